# %% number-of-windows
"""You make `window` windows. The argument is how many tokens a window holds; their number is N / window."""
def window_attention(q, k, v, window):
    N = q.shape[-2]
    if N % window:
        raise ValueError("N must be divisible by window")
    q, k, v = (x.unflatten(-2, (window, N // window)) for x in (q, k, v))
    return attention(q, k, v)[0].flatten(-3, -2)


# %% tokens-dealt-out
"""Your windows take every (N / window)-th token. A window is a block of neighbours: after the reshape, its
tokens lie along the inner axis."""
def window_attention(q, k, v, window):
    N = q.shape[-2]
    if N % window:
        raise ValueError("N must be divisible by window")
    q, k, v = (x.unflatten(-2, (window, N // window)).transpose(-3, -2) for x in (q, k, v))
    return attention(q, k, v)[0].transpose(-3, -2).flatten(-3, -2)


# %% sliding-window
"""Each of your tokens looks at the neighbours around it, so windows overlap. Here the sequence is cut into
separate blocks: token 0 of a block sees the whole block and nothing before it."""
def window_attention(q, k, v, window):
    N = q.shape[-2]
    if N % window:
        raise ValueError("N must be divisible by window")
    i = torch.arange(N, device=q.device)
    far = (i[:, None] - i[None, :]).abs() >= window
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return softargmax(scores.masked_fill(far, -math.inf)) @ v


# %% windows-not-put-back
"""Your output has an axis too many: the windows are never laid one after the other again."""
def window_attention(q, k, v, window):
    if q.shape[-2] % window:
        raise ValueError("N must be divisible by window")
    q, k, v = (x.unflatten(-2, (-1, window)) for x in (q, k, v))
    return attention(q, k, v)[0]


# %% window-ignored
"""Your result is full attention: tokens see other windows too."""
def window_attention(q, k, v, window):
    if q.shape[-2] % window:
        raise ValueError("N must be divisible by window")
    return attention(q, k, v)[0]


# %% keys-of-first-window
"""Every window of yours looks at the keys of the first one: keys and values have to be cut with the queries."""
def window_attention(q, k, v, window):
    if q.shape[-2] % window:
        raise ValueError("N must be divisible by window")
    parts = [attention(part, k[..., :window, :], v[..., :window, :])[0] for part in q.split(window, -2)]
    return torch.cat(parts, -2)


# %% remainder-accepted
"""A length that is no multiple of the window goes through, with a shorter window at the end. The contract says
ValueError."""
def window_attention(q, k, v, window):
    parts = zip(*(x.split(window, -2) for x in (q, k, v)), strict=True)
    return torch.cat([attention(*part)[0] for part in parts], -2)


# %% remainder-cut-off
"""A length that is no multiple of the window loses its last tokens without a word. The contract says
ValueError."""
def window_attention(q, k, v, window):
    n = q.shape[-2] // window * window
    q, k, v = (x[..., :n, :].unflatten(-2, (-1, window)) for x in (q, k, v))
    return attention(q, k, v)[0].flatten(-3, -2)


# %% scaled-by-window
"""Inside a window you scale by the root of its size. The dot product still runs over the width of the
vectors."""
def window_attention(q, k, v, window):
    if q.shape[-2] % window:
        raise ValueError("N must be divisible by window")
    q, k, v = (x.unflatten(-2, (-1, window)) for x in (q, k, v))
    return attention(q, k, v, beta=window**-0.5)[0].flatten(-3, -2)


# %% window-weights-returned-too
"""You return a pair. Both functions return `out` alone."""
def window_attention(q, k, v, window):
    if q.shape[-2] % window:
        raise ValueError("N must be divisible by window")
    q, k, v = (x.unflatten(-2, (-1, window)) for x in (q, k, v))
    out, weights = attention(q, k, v)
    return out.flatten(-3, -2), weights


# %% channel-scaled-by-width
"""Your channel attention scales by the root of D. Now the dot product of two channels runs over the N
tokens."""
def channel_attention(q, k, v):
    return attention(q.mT, k.mT, v.mT, beta=q.shape[-1] ** -0.5)[0].mT


# %% channel-unscaled
"""Your channel scores are plain dot products over N tokens: the weights are far too sharp. The scale is one
over the root of what the dot product runs over."""
def channel_attention(q, k, v):
    return attention(q.mT, k.mT, v.mT, beta=1.0)[0].mT


# %% channel-not-transposed-back
"""Your channel attention returns [B, D, N]: transpose the result back, tokens before channels."""
def channel_attention(q, k, v):
    return attention(q.mT, k.mT, v.mT)[0]


# %% channel-is-ordinary-attention
"""Your channel attention lets tokens look at tokens. Channels are the tokens here: transpose all three
first."""
def channel_attention(q, k, v):
    return attention(q, k, v)[0]


# %% channel-softmax-over-queries
"""Your channel weights sum to 1 over the query channels: v times softmax(q^T k) from the right normalises the
wrong axis. Write it as attention(q^T, k^T, v^T) and transpose the whole."""
def channel_attention(q, k, v):
    weights = softargmax(q.mT @ k / math.sqrt(q.shape[-2]))  # [B, D, D]
    return v @ weights


# %% channel-values-not-transposed
"""Your channel weights meet the values from the wrong side, untransposed: reshaping the result makes the shape
right, not the numbers."""
def channel_attention(q, k, v):
    weights = softargmax(q.mT @ k / math.sqrt(q.shape[-2]))  # [B, D, D]
    return (weights @ v.mT).reshape(v.shape)


# %% cost-half
"""You have half of the cost. Either one of the two products is missing (after the scores, the weights meet the
values), or you count a multiplication and its addition as one operation: they are two."""
def attention_cost(N, D, kind):
    return 2 * N * N * D if kind == "patches" else 2 * D * D * N


# %% cost-quarter
"""You have a quarter of the cost: one product instead of two, and a multiplication and its addition counted as
one."""
def attention_cost(N, D, kind):
    return N * N * D if kind == "patches" else N * D * D


# %% cost-kinds-swapped
"""Your two kinds are the wrong way round: between patches the matrix is N by N, between channels D by D."""
def attention_cost(N, D, kind):
    return 4 * D * D * N if kind == "patches" else 4 * N * N * D


# %% cost-projections-counted
"""You count the projections too. The question is about the two products of attention alone."""
def attention_cost(N, D, kind):
    return 8 * N * D * D + (4 * N * N * D if kind == "patches" else 4 * N * D * D)


# %% cost-entries-only
"""You count the entries of the attention matrix. Each of them is a dot product, with as many multiply-adds as
the vectors are long."""
def attention_cost(N, D, kind):
    return 4 * N * N if kind == "patches" else 4 * D * D


# %% cost-same-for-both
"""Your cost does not depend on the kind. Transposing swaps the roles of N and D: which one is squared?"""
def attention_cost(N, D, kind):
    return 4 * N * N * D


# %% no-gradient
"""Your numbers are right, but no gradient reaches the inputs: they are detached, or the work is done outside torch.
These are parts of models, and have to learn."""
def window_attention(q, k, v, window):
    if q.shape[1] % window:
        raise ValueError(f"window = {window} does not divide N = {q.shape[1]}")
    q, k, v = (x.detach().unflatten(1, (-1, window)) for x in (q, k, v))
    return attention(q, k, v)[0].flatten(1, 2)


def channel_attention(q, k, v):
    return attention(q.detach().mT, k.detach().mT, v.detach().mT)[0].mT


# %% weights-detached
"""Gradients reach the values, and neither queries nor keys: the attention weights are detached, so what to look at is
never learned."""
def window_attention(q, k, v, window):
    if q.shape[1] % window:
        raise ValueError(f"window = {window} does not divide N = {q.shape[1]}")
    q, k, v = (x.unflatten(1, (-1, window)) for x in (q, k, v))
    return (attention(q, k, v)[1].detach() @ v).flatten(1, 2)


def channel_attention(q, k, v):
    return (attention(q.mT, k.mT, v.mT)[1].detach() @ v.mT).mT


# %% softmax-overflows
"""With large scores your output is NaN: exp overflows. Subtract the largest score of each row first, or use a softmax
that does."""
def window_attention(q, k, v, window):
    if q.shape[1] % window:
        raise ValueError(f"window = {window} does not divide N = {q.shape[1]}")
    q, k, v = (x.unflatten(1, (-1, window)) for x in (q, k, v))
    e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    return (e / e.sum(-1, keepdim=True) @ v).flatten(1, 2)


def channel_attention(q, k, v):
    e = torch.exp(q.mT @ k / math.sqrt(q.shape[1]))
    return v @ (e / e.sum(-1, keepdim=True)).mT
