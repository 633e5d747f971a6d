# %% unnormalised
"""Your prediction grows with the number of examples: with ys all equal to 1 it is not 1. The kernel values
must be divided by their sum over the examples."""
replace("weights @ ys / weights.sum(-1, keepdim=True)", "weights @ ys")

# %% normalised-over-queries
"""Your weights sum to 1 over the queries x, not over the examples xs: look at the axis of the sum you divide
by."""
replace("weights @ ys / weights.sum(-1, keepdim=True)", "weights / weights.sum(0) @ ys")

# %% divided-by-count
"""You divide by the number of examples S. A weighted mean is divided by the sum of its weights, which differs
from query to query."""
replace("weights.sum(-1, keepdim=True)", "len(xs)")

# %% softmax-of-kernel
"""You take a softmax of the kernel values, which exponentiates a second time. The kernel values are the
weights already, up to their sum."""
replace("weights @ ys / weights.sum(-1, keepdim=True)", "torch.softmax(weights, 1) @ ys")

# %% query-second price=0.3
"""You call kernel(example, query): the query is the first argument. A symmetric kernel hides this, a lopsided
one does not."""
replace("kernel(x[:, None], xs[None])", "kernel(xs[None], x[:, None])")

# %% kernel-unscaled
"""Your attention kernel is exp(a . b) without the scale: attention divides the dot product by the square root
of the width it runs over."""
replace("torch.exp((a * b).sum(-1) / math.sqrt(d))", "torch.exp((a * b).sum(-1))")

# %% kernel-divided-by-d
"""Your attention kernel divides the dot product by d; the card's scale is the root of the width."""
replace("math.sqrt(d)", "d")

# %% kernel-scale-outside
"""The scale stands outside your exponential, where the normalisation cancels it. It has to divide the dot
product before the exponential is taken."""
replace("torch.exp((a * b).sum(-1) / math.sqrt(d))", "torch.exp((a * b).sum(-1)) / math.sqrt(d)")

# %% kernel-gaussian
"""Your kernel is Gaussian in the distance. It equals attention's only when all keys have the same norm: the
term |b|^2 in the exponent favours short keys."""
replace("(a * b).sum(-1) / math.sqrt(d)", "-((a - b) ** 2).sum(-1) / (2 * math.sqrt(d))")

# %% kernel-without-exponential
"""Your kernel is the scaled dot product itself, so weights can be negative. Softmax weights are exponentials
divided by their sum: which part of that is the kernel?"""
replace("torch.exp((a * b).sum(-1) / math.sqrt(d))", "(a * b).sum(-1) / math.sqrt(d)")

# %% kernel-values-detached price=0.3
"""The estimate is right, but no gradient flows through the kernel's values: they are turned into plain numbers, or
computed under `no_grad`. Queries and points could never be learned."""
replace("kernel(x[:, None], xs[None])", "kernel(x[:, None], xs[None]).detach()")

# %% kernel-symmetrised
"""You use the kernel in both orders and take the mean. Asked is kernel(query, point): a kernel need not be symmetric,
and then the two orders differ."""
replace("kernel(x[:, None], xs[None])", "kernel(x[:, None], xs[None]) + kernel(xs[None], x[:, None])")

# %% small-number-in-the-denominator price=0.15
"""Constant values come back a little too small: a small number is added to the sum of the kernel values. The question
says that the division needs no guard."""
replace("weights.sum(-1, keepdim=True)", "(weights.sum(-1, keepdim=True) + 1e-6)")

# %% transposed-grid
"""Your grid of kernel values is [S, T], a row for each point: it fits only where there are as many queries as points,
and is wrong even there. A row belongs to a query."""
replace("weights = kernel(x[:, None], xs[None])", "weights = kernel(x[None], xs[:, None])")

# %% float32-inside price=0.2
"""The estimate has the digits of float32, whatever dtype comes in: stay in the dtype of the inputs."""
replace("weights = kernel(x[:, None], xs[None])", "weights = kernel(x[:, None].float(), xs[None].float()).to(x.dtype)")

# %% kernel-gaussian-without-the-half
"""Your kernel is Gaussian in the distance. Attention's kernel grows with the dot product: a long key has more weight,
however far it is."""
replace("(a * b).sum(-1) / math.sqrt(d)", "-((a - b) ** 2).sum(-1) / math.sqrt(d)")

# %% kernel-plain-gaussian
"""Your kernel is the Gaussian of the text's example. Attention's kernel is another one: write attention's weight as a
fraction, and look at its numerator."""
replace("(a * b).sum(-1) / math.sqrt(d)", "-((a - b) ** 2).sum(-1) / 2")
