# %% concat-order-swapped
"""You stack [context; query], so each half of W_f meets the wrong vector. The query (the decoder's state)
comes first."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([context, query], -1) @ W_f.T), weights


# %% tanh-forgotten
"""Entries of your h_tilde leave (-1, 1): the tanh after W_f is missing."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.cat([query, context], -1) @ W_f.T, weights


# %% last-encoder-state-for-query
"""Beside the context you put the encoder's last state. The first half of the pair is the query, the decoder's
own state."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([keys[:, -1], context], -1) @ W_f.T), weights


# %% context-only
"""Your h_tilde uses the context and drops the query: both enter, side by side, through the two halves of
W_f."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(context @ W_f[:, query.shape[1] :].T), weights


# %% softmax-over-batch
"""Your weights sum to 1 down the batch, so the sentences compete with one another. They must sum to 1 over
the S keys of each sentence: look at the axis of the softmax."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), 0)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), weights


# %% scores-for-weights
"""You mix the keys with the raw scores: your weights are negative in places and do not sum to 1. The softmax
is missing."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = luong_scores(query, keys, kind, W, v)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), weights


# %% scores-scaled
"""You divide the scores by sqrt(D) before the softmax. That scale belongs to the Transformer's attention
(q1_7); Luong's step has none."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    scores = luong_scores(query, keys, kind, W, v) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), weights


# %% context-is-plain-mean
"""Your context is the plain mean of the keys: the weights are computed and returned, but never used to mix
them."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), -1)
    context = keys.mean(1)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), weights


# %% kind-ignored
"""Your step scores with "dot" whatever `kind` says: pass kind, W and v on to luong_scores."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, "dot"), -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), weights


# %% results-swapped
"""You return (weights, h_tilde): the order asked for is h_tilde first, then the weights."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = torch.softmax(luong_scores(query, keys, kind, W, v), -1)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return weights, torch.tanh(torch.cat([query, context], -1) @ W_f.T)


# %% scores-returned
"""Your h_tilde is right, but the second thing you return is the scores. Return the weights, after the softmax: they
are positive, and each row sums to 1."""


def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    scores = luong_scores(query, keys, kind, W, v)
    context = torch.einsum("bs,bsd->bd", softargmax(scores), keys)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), scores


# %% square-matrix-not-transposed
"""You tell by its shape whether W_f must be transposed, and a square one fools you. W_f is [E, 2D], also where E
happens to be 2D: multiply by its transpose always."""


def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = softargmax(luong_scores(query, keys, kind, W, v))
    pair = torch.cat([query, torch.einsum("bs,bsd->bd", weights, keys)], -1)
    return torch.tanh(pair @ (W_f if W_f.shape[0] == pair.shape[1] else W_f.T)), weights


# %% exponentials-overflow
"""Your weights are NaN where scores are large: the exponential of 1000 is infinity. Use your softargmax, or
`torch.softmax`: both subtract the largest score first."""


def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    e = torch.exp(luong_scores(query, keys, kind, W, v))
    weights = e / e.sum(-1, keepdim=True)
    context = torch.einsum("bs,bsd->bd", weights, keys)
    return torch.tanh(torch.cat([query, context], -1) @ W_f.T), weights
