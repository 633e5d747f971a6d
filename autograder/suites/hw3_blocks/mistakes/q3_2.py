# %% statistics-taken-as-constants
"""Your dx is gamma times dy over the deviation and nothing more: you treat mean and variance as constants,
but they are made of x. Two terms are missing; each takes something of the gradient away."""
replace("(g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True)) / s", "g / s")

# %% mean-term-forgotten
"""A constant added to x changes nothing, so each row of dx must sum to zero, and yours does not: the path
through the mean is missing."""
replace("g - g.mean(-1, keepdim=True) - x_hat", "g - x_hat")

# %% variance-term-forgotten
"""Stretching a row changes next to nothing, so dx must be all but orthogonal to the centred row, and yours is
not: the path through the variance is missing."""
replace(" - x_hat * (g * x_hat).mean(-1, keepdim=True)", "")

# %% gamma-forgotten
"""Your dx does not know gamma: on its way back the gradient passes the multiplication by gamma first."""
replace("g = gamma * dy", "g = dy")

# %% gamma-multiplied-last
"""You multiply by gamma after taking the two means; with a gamma that differs between columns that is not the
same. gamma belongs to dy, inside the means."""
replace("g = gamma * dy", "g = dy")
replace("dx = (g - g.mean", "dx = gamma * (g - g.mean")

# %% sums-for-means
"""The two terms that you take away are d times too large: they are means over the row, and you left them as
sums."""
replace("g.mean(-1, keepdim=True)", "g.sum(-1, keepdim=True)")
replace("(g * x_hat).mean(-1, keepdim=True)", "(g * x_hat).sum(-1, keepdim=True)")

# %% unbiased-variance
"""All your derivatives are off by a little, less so for wide rows: the variance is divided by d - 1. The card
asks for the biased one."""
replace("centred.square().mean(-1, keepdim=True)", "x.var(-1, keepdim=True)")

# %% eps-forgotten
"""With a large eps, or in a row that hardly varies, your derivatives are too large: the deviation that you
divide by has no eps in it, and the forward pass has."""
replace("centred.square().mean(-1, keepdim=True) + eps", "centred.square().mean(-1, keepdim=True)")

# %% dgamma-summed-over-first-axis-only
"""For x of shape [B, N, D] your dgamma and dbeta have shape [N, D]: gamma and beta are shared by every leading
axis, so the sum runs over all of them."""
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)", "(dy * x_hat).sum(0), dy.sum(0)")

# %% dgamma-summed-over-the-row
"""Your dgamma has one entry per token: you sum over the features. gamma has one entry per feature and is
shared by the tokens, so the tokens are what is summed over."""
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)", "(dy * x_hat).sum(-1), dy.sum(-1)")

# %% dgamma-with-raw-x
"""Your dgamma is the sum of dy times x. What gamma multiplies in the forward pass is the normalised x."""
replace("(dy * x_hat).reshape(-1, D)", "(dy * x).reshape(-1, D)")

# %% dgamma-and-dbeta-averaged
"""Your dgamma and dbeta are too small by the number of tokens: you average where the chain rule sums. A mean,
if there is one, belongs to the loss and has arrived in dy already."""
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)",
        "(dy * x_hat).reshape(-1, D).mean(0), dy.reshape(-1, D).mean(0)")

# %% dbeta-before-dgamma
"""The two gradients are right and stand in the wrong order: return dx, dgamma, dbeta."""
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)",
        "dy.reshape(-1, D).sum(0), (dy * x_hat).reshape(-1, D).sum(0)")

# %% ready-made-backward
"""The numbers are right, and torch's own backward function works them out. Asked are the formulas: dx from dy, x and
gamma along its three roads, and two sums over the tokens."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    shape, zero = (x.shape[-1],), torch.zeros_like(gamma)
    _, mean, rstd = torch.native_layer_norm(x, shape, gamma, zero, eps)
    return torch.ops.aten.native_layer_norm_backward(dy, x, shape, mean, rstd, gamma, zero, [True, True, True])

# %% sum-over-no-axes
"""For a single vector your dgamma is one number: `sum(())` with no axes adds everything up. Reshape to rows first."""
replace("D = x.shape[-1]", "axes = tuple(range(x.ndim - 1))")
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)", "(dy * x_hat).sum(axes), dy.sum(axes)")

# %% gain-divided-out
"""Where a gain is 0 your dgamma is NaN: it is made of gamma times dy and divided by gamma afterwards. gamma does not
enter its own gradient; begin with dy."""
replace("(dy * x_hat).reshape(-1, D).sum(0)", "(g * x_hat).reshape(-1, D).sum(0) / gamma")

# %% finite-differences
"""Your dx has lost digits, as if differences of the layer norm had been taken in the place of the formula. Follow x along
its three roads, and write down what comes out."""
replace("""    dx = (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True)) / s
""", """    def norm(x):
        c = x - x.mean(-1, keepdim=True)
        return c / torch.sqrt(c.square().mean(-1, keepdim=True) + eps)

    columns, h = [], 1e-3 * s
    for e in torch.eye(x.shape[-1], dtype=x.dtype, device=x.device):
        near, far = (g * (norm(x + k * h * e) - norm(x - k * h * e)) for k in (1, 2))
        columns.append((8 * near - far).sum(-1, keepdim=True) / (12 * h))
    dx = torch.cat(columns, -1)
""")
