# %% unbiased-variance
"""Your rows come out slightly too short: the variance is divided by d - 1. `torch.var` and `torch.std` do
that unless told otherwise; the card asks for the biased variance, divided by d."""
replace("x.var(-1, keepdim=True, correction=0)", "x.var(-1, keepdim=True)")

# %% eps-outside-root price=0.2
"""You add eps to the standard deviation; the card adds it to the variance, inside the root. The two part
company where a row hardly varies, or where eps is not tiny."""
replace("torch.sqrt(var + eps)", "(torch.sqrt(var) + eps)")

# %% std-plus-eps
"""Two things at once: `x.std()` divides by d - 1, and eps is added to the deviation instead of to the
variance inside the root. Start from the biased variance."""
replace("torch.sqrt(var + eps)", "(x.std(-1, keepdim=True) + eps)")

# %% eps-ignored price=0.2
"""A row whose entries are all equal gives NaN, and another eps changes nothing: the argument is never used.
It stands beside the variance, inside the root."""
replace("torch.sqrt(var + eps)", "torch.sqrt(var)")

# %% normalised-over-first-axis price=0.6
"""The output of one sample changes with the others in its batch: you take mean and variance over the first
axis, which is batch norm. A layer norm looks at one vector at a time, along the last axis."""
replace("x.mean(-1, keepdim=True)", "x.mean(0, keepdim=True)")
replace("x.var(-1, keepdim=True, correction=0)", "x.var(0, keepdim=True, correction=0)")

# %% axis-one
"""Matrices come out right, and [B, N, D] does not: axis 1 is the last axis of a matrix only. Count the axis
from the end."""
replace("x.mean(-1, keepdim=True)", "x.mean(1, keepdim=True)")
replace("x.var(-1, keepdim=True, correction=0)", "x.var(1, keepdim=True, correction=0)")

# %% all-axes-at-once price=0.6
"""You use one mean and one variance for the whole tensor, so every token depends on every other. Each vector
along the last axis has its own."""
replace("x.mean(-1, keepdim=True)", "x.mean()")
replace("x.var(-1, keepdim=True, correction=0)", "x.var(correction=0)")

# %% mean-kept
"""Your rows do not have mean zero before gamma and beta: you divide by the root of the mean square without
taking the mean away. That is RMS norm, a cousin of this one."""
replace("x.var(-1, keepdim=True, correction=0)", "(x**2).mean(-1, keepdim=True)")
replace("(x - mean)", "x")

# %% variance-without-root
"""You divide by the variance. Multiply x by ten and your result gets ten times smaller, where it should stay
as it is: the root is missing."""
replace("torch.sqrt(var + eps)", "(var + eps)")

# %% gamma-and-beta-swapped
"""gamma and beta have changed places: gamma stretches the normalised entries, beta is added at the end."""
replace("gamma * (x - mean) / torch.sqrt(var + eps) + beta", "beta * (x - mean) / torch.sqrt(var + eps) + gamma")

# %% beta-stretched-too price=0.2
"""You add beta before you multiply by gamma, so beta arrives stretched. First gamma, then beta."""
replace("gamma * (x - mean) / torch.sqrt(var + eps) + beta", "gamma * ((x - mean) / torch.sqrt(var + eps) + beta)")

# %% gamma-and-beta-forgotten
"""Your result is the same for every gamma and beta: the normalised entries still have to be stretched and
shifted."""
replace("gamma * (x - mean) / torch.sqrt(var + eps) + beta", "(x - mean) / torch.sqrt(var + eps)")

# %% statistics-detached price=0.2
"""The values are right and the gradient is not: mean and variance are cut out of the graph, but they depend
on x too, and their part of the derivative is missing."""
replace("(x - mean) / torch.sqrt(var + eps)", "(x - mean.detach()) / torch.sqrt(var.detach() + eps)")

# %% changed-in-place price=0.2
"""After your call the caller's x is centred: `-=` writes into the tensor you were given. Make a new one."""
replace("gamma * (x - mean)", "gamma * x.sub_(mean)")

# %% difference-of-squares price=0.2
"""Far from 0 your variance is lost: the mean of the squares less the square of the mean is a small difference of two
huge numbers. Take the mean away first, then square."""
replace("x.var(-1, keepdim=True, correction=0)", "((x * x).mean(-1, keepdim=True) - mean * mean).clamp_min(0)")

# %% view-of-any-x price=0.2
"""A transposed x ends in an error: `view` works only where the memory lies in that order. `reshape` always does, and
along the last axis neither is needed."""
replace("mean = x.mean(-1, keepdim=True)", """shape, x = x.shape, x.view(-1, x.shape[-1])
    mean = x.mean(-1, keepdim=True)""")
replace("gamma * (x - mean) / torch.sqrt(var + eps) + beta",
        "(gamma * (x - mean) / torch.sqrt(var + eps) + beta).view(shape)")

# %% half-precision-lost price=0.2
"""bfloat16 goes in and float32 comes out: results keep the input's dtype, so cast back at the end."""
replace("mean = x.mean(-1, keepdim=True)", """x = x if x.dtype == torch.float64 else x.float()
    mean = x.mean(-1, keepdim=True)""")

# %% float32-inside price=0.2
"""Your float64 results are right to seven digits only: somewhere inside you go through float32."""
replace("x.mean(-1, keepdim=True)", "x.float().mean(-1, keepdim=True)")
replace("x.var(-1, keepdim=True, correction=0)", "x.float().var(-1, keepdim=True, correction=0)")
replace("gamma * (x - mean) / torch.sqrt(var + eps)",
        "gamma * ((x.float() - mean) / torch.sqrt(var + eps)).to(x.dtype)")

# %% root-squared-again price=0.2
"""For a token whose features are all equal the gradient is NaN: you take the root of a variance of 0 and square it
again, and the root is infinitely steep at 0. Take it once, of the variance plus eps."""
replace("torch.sqrt(var + eps)", "torch.sqrt(var.sqrt() ** 2 + eps)")

# %% eps-added-twice
"""Your rows are a little short where they hardly vary: eps is added twice, to the variance and to its root. It has one
place, beside the variance inside the root."""
replace("torch.sqrt(var + eps)", "(torch.sqrt(var + eps) + eps)")

# %% eps-fixed price=0.2
"""Another eps changes nothing: you use 1e-5 whatever is asked for. Use the argument; 1e-5 is only its default."""
replace("torch.sqrt(var + eps)", "torch.sqrt(var + 1e-5)")

# %% axis-not-kept price=0.3
"""The mean has lost its axis: [B, N] cannot be subtracted from [B, N, D], and where the sizes happen to agree it is
taken from the wrong tokens. `keepdim=True` leaves an axis of length 1 in its place."""
replace("x.mean(-1, keepdim=True)", "x.mean(-1)")
replace("x.var(-1, keepdim=True, correction=0)", "x.var(-1, correction=0)")

# %% tokens-and-features-together
"""In [B, N, D] the tokens of an example share one mean and one variance: you take them over the last two axes. Each
token has its own, over the last axis alone."""
replace("x.mean(-1, keepdim=True)", "x.mean((-2, -1) if x.ndim > 1 else -1, keepdim=True)")
replace("x.var(-1, keepdim=True, correction=0)", "x.var((-2, -1) if x.ndim > 1 else -1, keepdim=True, correction=0)")
