# %% own-softargmax-and-bmm
"""q1_1's softargmax, bmm for the context, F.linear for W_f."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    weights = softargmax(luong_scores(query, keys, kind, W=W, v=v), dim=1)  # [B, S]
    context = torch.bmm(weights.unsqueeze(1), keys).squeeze(1)  # [B, D]
    return F.linear(torch.cat((query, context), dim=1), W_f).tanh(), weights


# %% two-halves-of-the-matrix
"""The two halves of W_f applied separately, context by a multiply and a sum."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    D = query.shape[-1]
    scores = luong_scores(query, keys, kind, W, v)
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    context = (weights[..., None] * keys).sum(-2)
    return torch.tanh(query @ W_f[:, :D].T + context @ W_f[:, D:].T), weights


# %% loop-over-the-batch
"""One sentence at a time, weights by hand."""
def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    h, w = [], []
    for b in range(len(query)):
        scores = luong_scores(query[b : b + 1], keys[b : b + 1], kind, W, v)[0]
        e = torch.exp(scores - scores.max())
        a = e / e.sum()
        context = sum(a[s] * keys[b, s] for s in range(keys.shape[1]))
        h.append(torch.tanh(W_f @ torch.cat([query[b], context])))
        w.append(a)
    return torch.stack(h), torch.stack(w)


# %% einops-column-vectors
"""Column vectors and named axes; does not call q1_3."""
import einops


def luong_step(query, keys, W_f, kind="dot", W=None, v=None):
    if kind == "dot":
        scores = einops.einsum(query, keys, "b d, b s d -> b s")
    elif kind == "general":
        scores = einops.einsum(query @ W, keys, "b d, b s d -> b s")
    elif kind == "concat":
        tiled = einops.repeat(query, "b d -> b s d", s=keys.shape[1])
        scores = (torch.cat([tiled, keys], -1) @ W.mT).tanh() @ v
    elif kind == "location":
        scores = query @ W.mT
    else:
        raise ValueError(kind)
    weights = F.softmax(scores, dim=-1)
    context = einops.einsum(weights, keys, "b s, b s d -> b d")
    pair, _ = einops.pack([query, context], "b *")
    return torch.tanh((W_f @ pair.mT).mT), weights
