# %% normalised-over-the-row price=0.6
"""Each row of your result is normalised on its own: that is layer norm. Batch norm takes mean and variance of
each column, over the samples of the batch."""
replace("x.mean(0)", "x.mean(1, keepdim=True)")
replace("x.var(0, correction=0)", "x.var(1, keepdim=True, correction=0)")

# %% normalised-over-everything
"""One mean and one variance for the whole matrix: your columns are still on different scales. Every column
has statistics of its own."""
replace("x.mean(0)", "x.mean()")
replace("x.var(0, correction=0)", "x.var(correction=0)")

# %% unbiased-variance
"""Your columns come out too small, most of all in a small batch: the variance is divided by B - 1. In training
batch norm normalises with the biased variance (the unbiased one is only what PyTorch keeps for later)."""
replace("x.var(0, correction=0)", "x.var(0)")

# %% eps-outside-root price=0.2
"""You add eps to the standard deviation. As in layer norm, it is added to the variance, inside the root."""
replace("torch.sqrt(var + eps)", "(torch.sqrt(var) + eps)")

# %% eval-mode
"""Your batch norm normalises by a stored mean of 0 and variance of 1, as in evaluation mode before any
training. In training mode the statistics are those of this batch."""
replace("x.mean(0)", "torch.zeros_like(gamma)")
replace("x.var(0, correction=0)", "torch.ones_like(gamma)")

# %% gamma-and-beta-per-row
"""You give each sample a gamma and a beta of its own. They belong to the columns: one pair per feature, shared
by the whole batch."""
replace("gamma * (x - mean) / torch.sqrt(var + eps) + beta",
        "gamma[: len(x), None] * (x - mean) / torch.sqrt(var + eps) + beta[: len(x), None]")

# %% gamma-and-beta-forgotten
"""Your result is the same for every gamma and beta: the normalised columns still have to be stretched and
shifted."""
replace("gamma * (x - mean) / torch.sqrt(var + eps) + beta", "(x - mean) / torch.sqrt(var + eps)")

# %% sets-swapped
"""Your two sets have changed places: layer norm takes its statistics along a row, batch norm along a
column."""
replace('kind == "layer"', 'kind == "batch"')

# %% layer-norm-elementwise price=0.3
"""You call layer norm elementwise. It is applied to each token by itself, but every entry of the token takes
part in its mean and variance: look at one row of the Jacobian."""
replace('"same row" if', '"same" if')

# %% batch-norm-as-in-evaluation price=0.3
"""With stored statistics an output of batch norm depends on its own input entry alone. Here the question is
about training mode, where the statistics come from the batch."""
replace('else "same column"', 'else "same"')

# %% everything-depends-on-everything
"""You say that all entries matter for both norms. Move an input entry in another row and another column: which
mean has it in it?"""
replace('{"same", "same row" if kind == "layer" else "same column"}',
        '{"same", "same row", "same column", "elsewhere"}')

# %% batch-norm-sees-the-whole-batch price=0.3
"""You say that batch norm depends on the whole batch. Its statistics are taken column by column: what happens
to an output when another column changes?"""
replace('else "same column"}', 'else "same column"} | ({"same row", "elsewhere"} if kind == "batch" else set())')

# %% own-entry-left-out price=0.2
"""You list the neighbours and forget the entry itself: an output depends on its own input, directly and
through the mean and the variance."""
replace('{"same", "same row" if', '{"same row" if')

# %% batch-of-one-refused price=0.2
"""A batch of one ends in an error: torch's own function refuses it. By the formula the mean is x itself, and beta comes
out."""
def batch_norm(x, gamma, beta, eps=1e-5):
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)

# %% batch-of-one-passed-on price=0.2
"""You let a batch of one pass without its mean taken away. The formula needs no exception: the mean is x itself, and
beta comes out."""
replace("mean = x.mean(0)", """if len(x) == 1:
        return gamma * x + beta
    mean = x.mean(0)""")

# %% batch-of-one-returned price=0.2
"""You give a batch of one back as it came. The formula needs no exception: the mean is x itself, the variance 0, and
beta comes out."""
replace("mean = x.mean(0)", """if len(x) == 1:
        return x
    mean = x.mean(0)""")

# %% statistics-detached price=0.3
"""The values are right and the gradient is not: mean and variance are cut out of the graph, but they are made of x
too."""
replace("(x - mean) / torch.sqrt(var + eps)", "(x - mean.detach()) / torch.sqrt(var.detach() + eps)")

# %% eps-fixed price=0.2
"""Another eps changes nothing: you use 1e-5 whatever is asked for."""
replace("torch.sqrt(var + eps)", "torch.sqrt(var + 1e-5)")
