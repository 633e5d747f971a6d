# %% general-transposed
"""Your "general" score is key^T W query: the matrix is applied to the wrong side. The query stands on the
left of W."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("be,de,bsd->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T) @ v
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% concat-without-tanh
"""Your "concat" score is linear in the query and the keys: the tanh between W and v is missing."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T @ v
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% concat-order-swapped
"""In "concat" you stack [key; query], so the left half of W meets the keys. The query comes first."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([keys, query[:, None].expand(B, S, D)], -1) @ W.T) @ v
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% concat-two-tanhs
"""In "concat" you squash the query's part and the key's part separately and then add them; the tanh acts
once, on the sum of both parts. As you have it, query and key never interact."""
def luong_scores(query, keys, kind, W=None, v=None):
    D = keys.shape[-1]
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return (torch.tanh(query @ W[:, :D].T)[:, None] + torch.tanh(keys @ W[:, D:].T)) @ v
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% concat-ignores-v
"""In "concat" you add up the hidden units instead of weighing them with v: v is never used."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T).sum(-1)
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% location-looks-at-keys
"""Your "location" score changes with the keys, but it is blind to them: row s of W scores place s from the
query alone."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T) @ v
    if kind == "location":
        return torch.einsum("sd,bsd->bs", W, keys)
    raise ValueError(f"unknown kind {kind!r}")


# %% dot-scaled
"""You divide the "dot" score by sqrt(D). That scale belongs to the Transformer's attention (q1_7); Luong's
dot product is plain."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys) / math.sqrt(D)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T) @ v
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% weights-for-scores
"""Your rows sum to 1: these are already the weights. The scores are what goes into the softmax; that comes in
q1_4."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        scores = torch.einsum("bd,bsd->bs", query, keys)
    elif kind == "general":
        scores = torch.einsum("bd,de,bse->bs", query, W, keys)
    elif kind == "concat":
        scores = torch.tanh(torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T) @ v
    elif kind == "location":
        scores = query @ W.T
    else:
        raise ValueError(f"unknown kind {kind!r}")
    return torch.softmax(scores, -1)


# %% batch-mixed
"""Your scores compare each query with the keys of the whole batch: row b may only use the keys of row b, so
the batch axis must not be summed over."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    if kind == "dot":
        return torch.einsum("bd,csd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,cse->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([query[:, None].expand(B, S, D), keys], -1) @ W.T) @ v
    if kind == "location":
        return query @ W.T
    raise ValueError(f"unknown kind {kind!r}")


# %% parameters-detached
"""The scores are right, but W gets no gradient: it is detached (or its `.data` is taken), so it would never learn."""


def luong_scores(query, keys, kind, W=None, v=None):
    W = None if W is None else W.detach()
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        return torch.tanh(torch.cat([query[:, None].expand_as(keys), keys], -1) @ W.T) @ v
    return query @ W.T
