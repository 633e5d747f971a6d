# %% python-loops
"""One score at a time."""
def luong_scores(query, keys, kind, W=None, v=None):
    def score(b, s):
        q, k = query[b], keys[b, s]
        if kind == "dot":
            return q @ k
        if kind == "general":
            return q @ W @ k
        if kind == "concat":
            return v @ torch.tanh(W @ torch.cat([q, k]))
        if kind == "location":
            return W[s] @ q
        raise ValueError(kind)

    return torch.stack([torch.stack([score(b, s) for s in range(keys.shape[1])]) for b in range(len(query))])


# %% batched-matmul
"""bmm against a column; the two halves of W applied separately before one tanh."""
def luong_scores(query, keys, kind, W=None, v=None):
    D = query.shape[-1]
    if kind == "location":
        return F.linear(query, W)
    if kind == "concat":
        hidden = F.linear(query, W[:, :D]).unsqueeze(1) + F.linear(keys, W[:, D:])  # [B, S, A]
        return torch.matmul(hidden.tanh(), v)
    if kind not in ("dot", "general"):
        raise ValueError(f"kind must be dot, general, concat or location, not {kind}")
    left = query if kind == "dot" else query @ W
    return torch.bmm(keys, left.unsqueeze(-1)).squeeze(-1)


# %% einops
"""Named axes, and a table of functions in place of branches."""
import einops


def luong_scores(query, keys, kind, W=None, v=None):
    def concat():
        both = torch.cat([einops.repeat(query, "b d -> b s d", s=keys.shape[1]), keys], dim=-1)
        return einops.einsum(torch.tanh(einops.einsum(W, both, "a e, b s e -> b s a")), v, "b s a, a -> b s")

    table = {
        "dot": lambda: einops.einsum(query, keys, "b d, b s d -> b s"),
        "general": lambda: einops.einsum(query, W, keys, "b d, d e, b s e -> b s"),
        "concat": concat,
        "location": lambda: einops.einsum(W, query, "s d, b d -> b s"),
    }
    return table[kind]()


# %% multiply-and-sum
"""Elementwise products summed over the width; W moves the keys for "general"."""
def luong_scores(query, keys, kind, W=None, v=None):
    q = query[:, None, :]  # [B, 1, D]
    if kind == "dot":
        return (q * keys).sum(-1)
    if kind == "general":
        return (q * (keys @ W.T)).sum(-1)
    if kind == "concat":
        pair = torch.cat((q.repeat(1, keys.shape[1], 1), keys), 2)  # [B, S, 2 D]
        return (v * torch.tanh(pair @ W.transpose(0, 1))).sum(-1)
    if kind == "location":
        return (W * q).sum(-1)
    raise ValueError(f"unknown kind: {kind}")


# %% bilinear
"""F.bilinear for "general", "dot" as the same with the identity."""
def luong_scores(query, keys, kind, W=None, v=None):
    B, S, D = keys.shape
    q = query.unsqueeze(1).expand(B, S, D)
    if kind == "dot":
        W = torch.eye(D, dtype=query.dtype, device=query.device)
    if kind in ("dot", "general"):
        return F.bilinear(q.reshape(B * S, D), keys.reshape(B * S, D), W[None]).view(B, S)
    if kind == "concat":
        return F.linear(torch.tanh(F.linear(torch.cat([q, keys], -1), W)), v[None]).squeeze(-1)
    if kind == "location":
        return (W @ query.T).T
    raise ValueError(f"no such kind: {kind}")
