# %% identity-too-soft
"""Your identity blurs: a score of 1 against 0 leaves much weight on the other positions. The scores must be
so far apart that softmax is all but an argmax."""
def identity_layer(n, d):
    Wq, Wv = torch.zeros(1, d + n, n), torch.zeros(1, d + n, d)
    Wq[0, d:] = torch.eye(n)
    Wv[0, :d] = torch.eye(d)
    return {"Wq": Wq, "Wk": Wq.clone(), "Wv": Wv, "Wo": torch.eye(d)}


# %% identity-forgets-the-scale
"""Your identity is sharp for small n only: the layer divides the scores by sqrt(A), so the gap between right
and wrong positions shrinks as A grows."""
def identity_layer(n, d):
    Wq, Wk, Wv = torch.zeros(1, d + n, n), torch.zeros(1, d + n, n), torch.zeros(1, d + n, d)
    Wq[0, d:] = 20 * torch.eye(n)
    Wk[0, d:] = torch.eye(n)
    Wv[0, :d] = torch.eye(d)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": torch.eye(d)}


# %% identity-by-content
"""Your scores compare contents: a token then attends to whichever token has the largest dot product with it,
which need not be itself. Use the one-hot positions, which are the same for every X."""
def identity_layer(n, d):
    W, Wv = torch.zeros(1, d + n, d), torch.zeros(1, d + n, d)
    W[0, :d] = 30 * d**0.25 * torch.eye(d)
    Wv[0, :d] = torch.eye(d)
    return {"Wq": W, "Wk": W.clone(), "Wv": Wv, "Wo": torch.eye(d)}


# %% identity-returns-positions-too
"""Your output has width d + n: the values carry the one-hot positions along. Only the content may leave the
layer."""
def identity_layer(n, d):
    Wq, Wk = torch.zeros(1, d + n, n), torch.zeros(1, d + n, n)
    Wq[0, d:] = 1000 * math.sqrt(n) * torch.eye(n)
    Wk[0, d:] = torch.eye(n)
    return {"Wq": Wq, "Wk": Wk, "Wv": torch.eye(d + n)[None], "Wo": torch.eye(d + n)}


# %% permutation-inverted
"""Your layer applies the inverse permutation: output i must be input perm[i], and you send input i to output
perm[i]."""
def permutation_layer(perm, d):
    n = len(perm)
    Wq, Wk, Wv = torch.zeros(1, d + n, n), torch.zeros(1, d + n, n), torch.zeros(1, d + n, d)
    for i, j in enumerate(perm):
        Wq[0, d + int(j), i] = 1000 * math.sqrt(n)
    Wk[0, d:] = torch.eye(n)
    Wv[0, :d] = torch.eye(d)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": torch.eye(d)}


# %% pointwise-uniform-attention
"""All your output rows are equal: uniform attention averages the tokens before W acts. Each position has to
look at itself alone."""
def pointwise_layer(W, n):
    d_out, d_in = W.shape
    Wv = W.new_zeros(1, d_in + n, d_out)
    Wv[0, :d_in] = W.T
    zeros = W.new_zeros(1, d_in + n, 1)
    return {"Wq": zeros, "Wk": zeros, "Wv": Wv, "Wo": torch.eye(d_out, dtype=W.dtype, device=W.device)}


# %% convolution-mirrored
"""Your kernel is mirrored: tap t looks at i - (t - K // 2). nn.Conv1d does not flip its kernel."""
def convolution_layer(kernel, n):
    d_out, d_in, K = kernel.shape
    Wq, Wv = kernel.new_zeros(K, d_in + n, n), kernel.new_zeros(K, d_in + n, d_out)
    Wk = Wq.clone()
    for t in range(K):
        for i in range(n):
            Wq[t, d_in + i, (i - t + K // 2) % n] = 1000 * math.sqrt(n)
            Wk[t, d_in + i, i] = 1.0
        Wv[t, :d_in] = kernel[:, :, t].T
    Wo = torch.eye(d_out, dtype=kernel.dtype, device=kernel.device).repeat(K, 1)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo}


# %% convolution-not-centred
"""Your window starts at position i; it should have i in its middle, so the first tap looks K // 2 positions
back."""
def convolution_layer(kernel, n):
    d_out, d_in, K = kernel.shape
    Wq, Wv = kernel.new_zeros(K, d_in + n, n), kernel.new_zeros(K, d_in + n, d_out)
    Wk = Wq.clone()
    for t in range(K):
        for i in range(n):
            Wq[t, d_in + i, (i + t) % n] = 1000 * math.sqrt(n)
            Wk[t, d_in + i, i] = 1.0
        Wv[t, :d_in] = kernel[:, :, t].T
    Wo = torch.eye(d_out, dtype=kernel.dtype, device=kernel.device).repeat(K, 1)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo}


# %% convolution-borders-clamped
"""The middle is right, the borders are not: a tap that leaves the sequence must come in again at the other
end, and yours stays at the edge."""
def convolution_layer(kernel, n):
    d_out, d_in, K = kernel.shape
    Wq, Wv = kernel.new_zeros(K, d_in + n, n), kernel.new_zeros(K, d_in + n, d_out)
    Wk = Wq.clone()
    for t in range(K):
        for i in range(n):
            Wq[t, d_in + i, min(max(i + t - K // 2, 0), n - 1)] = 1000 * math.sqrt(n)
            Wk[t, d_in + i, i] = 1.0
        Wv[t, :d_in] = kernel[:, :, t].T
    Wo = torch.eye(d_out, dtype=kernel.dtype, device=kernel.device).repeat(K, 1)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo}


# %% convolution-one-head
"""One head cannot do it: its weights are non-negative and sum to 1, and all positions it looks at share one
Wv. Count how many different matrices the kernel has."""
def convolution_layer(kernel, n):
    d_out, d_in, K = kernel.shape
    Wq, Wv = kernel.new_zeros(1, d_in + n, n), kernel.new_zeros(1, d_in + n, d_out)
    Wk = Wq.clone()
    for i in range(n):
        for t in range(K):
            Wq[0, d_in + i, (i + t - K // 2) % n] = 1000 * math.sqrt(n)
        Wk[0, d_in + i, i] = 1.0
    Wv[0, :d_in] = kernel.sum(2).T
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": torch.eye(d_out, dtype=kernel.dtype, device=kernel.device)}


# %% convolution-heads-averaged
"""Your output is K times too small: the heads are averaged, but a convolution adds up its taps."""
def convolution_layer(kernel, n):
    d_out, d_in, K = kernel.shape
    Wq, Wv = kernel.new_zeros(K, d_in + n, n), kernel.new_zeros(K, d_in + n, d_out)
    Wk = Wq.clone()
    for t in range(K):
        for i in range(n):
            Wq[t, d_in + i, (i + t - K // 2) % n] = 1000 * math.sqrt(n)
            Wk[t, d_in + i, i] = 1.0
        Wv[t, :d_in] = kernel[:, :, t].T
    Wo = torch.eye(d_out, dtype=kernel.dtype, device=kernel.device).repeat(K, 1) / K
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo}


# %% lead-without-the-root
"""Your softmax is sharp for a few places and blurs for many: the layer divides the scores by sqrt(A), so a lead that is
fixed melts away as n grows. Multiply it by that root."""


def permutation_layer(perm, d):
    n = len(perm)
    none = torch.zeros(d, n)
    Wq, Wk = torch.cat([none, 100 * torch.eye(n)[list(perm)]]), torch.cat([none, torch.eye(n)])
    Wv = torch.cat([torch.eye(d), torch.zeros(n, d)])
    return {"Wq": Wq[None], "Wk": Wk[None], "Wv": Wv[None], "Wo": torch.eye(d)}


# %% square-map-not-transposed
"""You tell by its shape whether W must be transposed, and a square one fools you. W is [d_out, d_in] and output i is
W x_i: rows are multiplied by its transpose, always."""


def pointwise_layer(W, n):
    square = W.shape[0] == W.shape[1]
    return identity_layer(n, W.shape[1]) | {"Wo": W if square else W.T}


# %% wrapped-once
"""You go round the corner once only: with a kernel more than twice as wide as there are places, some taps go round
several times. Take the place modulo n."""


def convolution_layer(kernel, n):
    _, d_in, K = kernel.shape
    shifts = [[min(max(i + t - K // 2, -n), 2 * n - 1) % n for i in range(n)] for t in range(K)]
    heads = [permutation_layer(shift, d_in) for shift in shifts]
    layer = {name: torch.cat([head[name] for head in heads]) for name in ("Wq", "Wk", "Wv")}
    return layer | {"Wo": kernel.permute(2, 1, 0).flatten(0, 1)}
