# %% normalised-over-the-row
"""Each row of your result is normalised on its own: that is layer norm. Batch norm takes mean and variance of
each column, over the samples of the batch."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(1, keepdim=True)
    var = x.var(1, keepdim=True, unbiased=False)
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta


# %% normalised-over-everything
"""One mean and one variance for the whole matrix: your columns are still on different scales. Every column
has statistics of its own."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean()
    var = x.var(unbiased=False)
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta


# %% unbiased-variance
"""Your columns come out too small, most of all in a small batch: the variance is divided by B - 1. In training
batch norm normalises with the biased variance (the unbiased one is only what PyTorch keeps for later)."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(0)
    var = x.var(0)
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta


# %% eps-outside-root
"""You add eps to the standard deviation. As in layer norm, it is added to the variance, inside the root."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(0)
    std = x.var(0, unbiased=False).sqrt()
    return gamma * (x - mean) / (std + eps) + beta


# %% eval-mode
"""Your batch norm normalises by a stored mean of 0 and variance of 1, as in evaluation mode before any
training. In training mode the statistics are those of this batch."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean, var = torch.zeros_like(gamma), torch.ones_like(gamma)
    return F.batch_norm(x, mean, var, gamma, beta, training=False, eps=eps)


# %% gamma-and-beta-per-row
"""You give each sample a gamma and a beta of its own. They belong to the columns: one pair per feature, shared
by the whole batch."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(0)
    var = x.var(0, unbiased=False)
    return gamma[: len(x), None] * (x - mean) / torch.sqrt(var + eps) + beta[: len(x), None]


# %% gamma-and-beta-forgotten
"""Your result is the same for every gamma and beta: the normalised columns still have to be stretched and
shifted."""
def batch_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(0)
    var = x.var(0, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps)


# %% sets-swapped
"""Your two sets have changed places: layer norm takes its statistics along a row, batch norm along a
column."""
def depends_on(kind):
    return {"layer": {"same", "same column"}, "batch": {"same", "same row"}}[kind]


# %% layer-norm-elementwise
"""You call layer norm elementwise. It is applied to each token by itself, but every entry of the token takes
part in its mean and variance: look at one row of the Jacobian."""
def depends_on(kind):
    return {"layer": {"same"}, "batch": {"same", "same column"}}[kind]


# %% batch-norm-as-in-evaluation
"""With stored statistics an output of batch norm depends on its own input entry alone. Here the question is
about training mode, where the statistics come from the batch."""
def depends_on(kind):
    return {"layer": {"same", "same row"}, "batch": {"same"}}[kind]


# %% everything-depends-on-everything
"""You say that all entries matter for both norms. Move an input entry in another row and another column: which
mean has it in it?"""
def depends_on(kind):
    return {"same", "same row", "same column", "elsewhere"}


# %% batch-norm-sees-the-whole-batch
"""You say that batch norm depends on the whole batch. Its statistics are taken column by column: what happens
to an output when another column changes?"""
def depends_on(kind):
    row = {"same", "same row"}
    return row if kind == "layer" else row | {"same column", "elsewhere"}


# %% own-entry-left-out
"""You list the neighbours and forget the entry itself: an output depends on its own input, directly and
through the mean and the variance."""
def depends_on(kind):
    return {"layer": {"same row"}, "batch": {"same column"}}[kind]


# %% batch-of-one-refused
"""A batch of one ends in an error: torch's own function refuses it. By the formula the mean is x itself, and beta comes
out."""
def batch_norm(x, gamma, beta, eps=1e-5):
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)


# %% batch-of-one-passed-on
"""You let a batch of one pass without its mean taken away. The formula needs no exception: the mean is x itself, and
beta comes out."""
def batch_norm(x, gamma, beta, eps=1e-5):
    if len(x) == 1:
        return gamma * x + beta
    return gamma * (x - x.mean(0)) / torch.sqrt(x.var(0, correction=0) + eps) + beta
