# %% division-by-zero-at-step-0 price=0.2
"""Step 0 is an error: 0 to the power -1/2. Schedulers ask for it, so the answer there must be finite."""
replace("step = max(step, 1)", "")

# %% larger-arm-taken
"""Your rate is huge at the first step and grows again after the warm-up: you take the larger of the two arms, and
the smaller one is the schedule."""
replace("min(step**-0.5, step * warmup**-1.5)", "max(step**-0.5, step * warmup**-1.5)")

# %% warmup-exponent
"""Your two arms do not meet at the end of the warm-up: step times warmup to the power -1/2 is not step to the power
-1/2 there. Which exponent makes them equal at step = warmup?"""
replace("step * warmup**-1.5", "step * warmup**-0.5")

# %% ramp-ends-at-one
"""You raise the rate to 1 / sqrt(D) itself and only then let it fall: step / warmup is the ramp of another
schedule. The peak here is 1 / sqrt(D warmup)."""
replace("min(step**-0.5, step * warmup**-1.5)", "min(1.0, step / warmup, math.sqrt(warmup / step))")

# %% width-the-wrong-way
"""A wider model gets a larger rate from you. The factor is d_model to the power minus 1/2."""
replace("d_model**-0.5", "d_model**0.5")

# %% width-forgotten
"""Your rate does not depend on d_model."""
replace("d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)", "min(step**-0.5, step * warmup**-1.5)")

# %% never-falls
"""After the warm-up your rate stays where it is. It falls there, like one over the root of the step."""
replace("step = max(step, 1)", "")
replace("min(step**-0.5,", "min(warmup**-0.5,")

# %% steps-counted-from-zero price=0.2
"""Your schedule is one step late: at step = warmup it has already passed its peak, because you add 1 to every step.
Only step 0 needs care."""
replace("step = max(step, 1)", "step = step + 1")

# %% falls-like-one-over-the-step
"""After the warm-up your rate falls too fast: like one over the step. It falls like one over its root, so that at
four times the warm-up it is half the peak."""
replace("min(step**-0.5,", "min(warmup**0.5 / step,")

# %% width-fixed price=0.3
"""Your rate is the same for every d_model: a width stands in your formula as a number. Use the argument."""
replace("d_model**-0.5", "512**-0.5")
