# %% statistics-taken-as-constants price=0.6
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

# %% unbiased-variance price=0.2
"""All your derivatives are off by a little, less so for wide rows: the variance is divided by d - 1. The card
asks for the biased one."""
replace("centred.square().mean(-1, keepdim=True)", "x.var(-1, keepdim=True)")

# %% eps-forgotten price=0.2
"""With a large eps, or in a row that hardly varies, your derivatives are too large: the deviation that you
divide by has no eps in it, and the forward pass has."""
replace("centred.square().mean(-1, keepdim=True) + eps", "centred.square().mean(-1, keepdim=True)")

# %% dgamma-summed-over-first-axis-only price=0.2
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

# %% dbeta-before-dgamma price=0.2
"""The two gradients are right and stand in the wrong order: return dx, dgamma, dbeta."""
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)",
        "dy.reshape(-1, D).sum(0), (dy * x_hat).reshape(-1, D).sum(0)")

# %% ready-made-backward price=0.8
"""The numbers are right, and torch's own backward function works them out. Asked are the formulas: dx from dy, x and
gamma along its three roads, and two sums over the tokens."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    shape, zero = (x.shape[-1],), torch.zeros_like(gamma)
    _, mean, rstd = torch.native_layer_norm(x, shape, gamma, zero, eps)
    return torch.ops.aten.native_layer_norm_backward(dy, x, shape, mean, rstd, gamma, zero, [True, True, True])

# %% sum-over-no-axes price=0.2
"""For a single vector your dgamma is one number: `sum(())` with no axes adds everything up. Reshape to rows first."""
replace("D = x.shape[-1]", "axes = tuple(range(x.ndim - 1))")
replace("(dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)", "(dy * x_hat).sum(axes), dy.sum(axes)")

# %% gain-divided-out price=0.2
"""Where a gain is 0 your dgamma is NaN: it is made of gamma times dy and divided by gamma afterwards. gamma does not
enter its own gradient; begin with dy."""
replace("(dy * x_hat).reshape(-1, D).sum(0)", "(g * x_hat).reshape(-1, D).sum(0) / gamma")

# %% differences-of-higher-order price=0.8
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

# %% finite-differences price=0.8
"""Your dx is nearly right, and not to the last digits: it is a difference of nearby values over a small step. For
long tokens the step is too small, for short ones too large. Asked is the formula: three roads, added with a
pencil."""
replace("dx = (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True)) / s",
        """h = 1e-5 * torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)  # [D, D]: a step along each feature

    def value(z):
        z = z - z.mean(-1, keepdim=True)
        return (z / torch.sqrt(z.square().mean(-1, keepdim=True) + eps) * g[..., None, :]).sum(-1)  # [..., D]

    dx = (value(x[..., None, :] + h) - value(x[..., None, :] - h)) / 2e-5""")

# %% variance-road-with-a-plus
"""The road through the variance has the wrong sign: a feature far from the mean makes s larger and all of x_hat
smaller, so this term is taken away, like that of the mean."""
replace("- x_hat * (g * x_hat)", "+ x_hat * (g * x_hat)")

# %% means-of-dy
"""Your two means are taken of dy, and only the first term has gamma in it. What arrives at x_hat is gamma times dy,
in all three terms."""
replace("g.mean(-1, keepdim=True) - x_hat * (g * x_hat)", "dy.mean(-1, keepdim=True) - x_hat * (dy * x_hat)")

# %% means-over-d-minus-one
"""The two terms that you take away are a little too large: their sums are divided by D - 1. Both are plain means over
the D features."""
replace("g.mean(-1, keepdim=True)", "g.sum(-1, keepdim=True) / (x.shape[-1] - 1)")
replace("(g * x_hat).mean(-1, keepdim=True)", "(g * x_hat).sum(-1, keepdim=True) / (x.shape[-1] - 1)")

# %% divided-by-the-variance
"""You divide dx by the variance. Every road has one factor 1 / s, and s is the root."""
replace("(g * x_hat).mean(-1, keepdim=True)) / s", "(g * x_hat).mean(-1, keepdim=True)) / s**2")

# %% divided-by-nothing
"""The factor 1 / s is missing in dx: a token twice as long must get a gradient half as large, and yours stays as it
is."""
replace("(g * x_hat).mean(-1, keepdim=True)) / s", "(g * x_hat).mean(-1, keepdim=True))")

# %% dgamma-with-the-gain
"""gamma enters its own gradient: your dgamma is made of gamma times dy. Before gamma multiplies there is x_hat, and
behind it dy: their product is all."""
replace("(dy * x_hat).reshape(-1, D)", "(g * x_hat).reshape(-1, D)")

# %% variance-road-with-raw-x
"""On the road through the variance x_hat stands twice, and in one of its places you have x - mean, without the
division by s. Make the token twice as long: your dx does not halve."""
replace("- x_hat * (g * x_hat)", "- centred * (g * x_hat)")

# %% no-hat-in-front price=0.4
"""You take away the mean of g times x_hat as it is. That road ends at x_j through (x_j - mean), so the mean is
multiplied by x_hat once more."""
replace("- x_hat * (g * x_hat)", "- (g * x_hat)")
