# %% two-arms
"""An if for each arm, roots instead of powers; 0 at step 0."""
def noam_rate(step, d_model, warmup):
    peak = 1 / math.sqrt(d_model * warmup)
    if step <= warmup:
        return peak * step / warmup
    return peak * math.sqrt(warmup / step)


# %% step-zero-is-zero
"""The formula as it stands, and 0 where it cannot be evaluated."""
def noam_rate(step, d_model, warmup):
    if step == 0:
        return 0.0
    return min(step**-0.5, step * warmup**-1.5) / d_model**0.5


# %% infinity-at-zero
"""The falling arm is infinite at step 0, and the minimum takes the other."""
def noam_rate(step, d_model, warmup):
    falling = step**-0.5 if step > 0 else math.inf
    return min(falling, step * warmup ** (-3 / 2)) * d_model ** (-1 / 2)


# %% zero-dim-tensor
"""In torch, float64, a 0-dim tensor as the result; rsqrt of 0 is infinite and loses the minimum."""
def noam_rate(step, d_model, warmup):
    s = torch.as_tensor(step, dtype=torch.float64)
    return torch.minimum(s.rsqrt(), s / warmup**1.5) / math.sqrt(d_model)


# %% in-logarithms
"""A sum of logarithms: the smaller arm by comparing exponents; step 0 counts as step 1."""
def noam_rate(step, d_model, warmup):
    s, w = math.log(max(1, step)), math.log(warmup)
    return math.exp(-0.5 * math.log(d_model) + min(-0.5 * s, s - 1.5 * w))
