# %% einsum-and-nan-to-num
"""einsum, masked_fill with -inf, NaN rows turned into zero after the softmax."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    if beta is None:
        beta = q.shape[-1] ** -0.5
    scores = torch.einsum("...td,...sd->...ts", q, k) * beta
    if key_padding_mask is not None:
        pad = key_padding_mask[:, None, :] if q.dim() == 3 else key_padding_mask[:, None, None, :]
        scores = scores.masked_fill(pad, float("-inf"))
    if causal:
        T, S = scores.shape[-2:]
        i = torch.arange(T, device=q.device)[:, None]
        j = torch.arange(S, device=q.device)
        scores = scores.masked_fill(j > i + S - T, float("-inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("...ts,...sv->...tv", weights, v), weights


# %% finite-fill-and-zeroed-rows
"""The smallest finite number in place of -inf, blocked weights zeroed afterwards; the query is scaled, not
the scores."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    B, T, S = q.shape[0], q.shape[-2], k.shape[-2]
    allowed = torch.ones(B, 1, 1, S, dtype=torch.bool, device=q.device)
    if key_padding_mask is not None:
        allowed = ~key_padding_mask.reshape(B, 1, 1, S)
    if causal:
        allowed = allowed & torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
    if q.dim() == 3:
        allowed = allowed.squeeze(1)
    scale = 1 / math.sqrt(k.shape[-1]) if beta is None else beta
    scores = torch.matmul(q * scale, k.mT)
    scores = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
    weights = torch.where(allowed, F.softmax(scores, dim=-1), 0.0)
    return torch.matmul(weights, v), weights


# %% query-by-query
"""Loops over batch, head and query; each query is given only the keys it may see."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    if q.dim() == 4:
        heads = [attention(*head, key_padding_mask, causal, beta)
                 for head in zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True)]
        return torch.stack([out for out, _ in heads], 1), torch.stack([w for _, w in heads], 1)
    (B, T, D), S = q.shape, k.shape[1]
    scale = beta if beta is not None else 1 / math.sqrt(D)
    out, weights = [], []
    for b in range(B):
        for i in range(T):
            seen = [j for j in range(S)
                    if not (causal and j > i + S - T)
                    and not (key_padding_mask is not None and bool(key_padding_mask[b, j]))]
            row = 0.0 * (k[b] @ q[b, i])
            if seen:
                z = scale * (k[b, seen] @ q[b, i])
                row = row.index_put((torch.tensor(seen, device=q.device),), torch.softmax(z, 0))
            weights.append(row)
            out.append(row @ v[b])
    return torch.stack(out).view(B, T, -1), torch.stack(weights).view(B, T, S)


# %% einops-exponentials
"""Softmax written out: exponentials of allowed scores, divided by their sum; axes named with einops."""
import einops


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    scale = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    z = scale * einops.einsum(q, k, "b ... t d, b ... s d -> b ... t s")
    keep = torch.ones(T, S, device=q.device, dtype=torch.bool)
    if causal:
        keep = torch.tril(keep, diagonal=S - T)
    keep = keep.expand(z.shape)
    if key_padding_mask is not None:
        pattern = "b s -> b 1 s" if q.dim() == 3 else "b s -> b 1 1 s"
        keep = keep & ~einops.rearrange(key_padding_mask, pattern)
    top = z.masked_fill(~keep, torch.finfo(z.dtype).min).amax(-1, keepdim=True).detach()
    e = torch.exp(torch.where(keep, z - top, 0.0)) * keep
    total = e.sum(-1, keepdim=True)
    weights = e / torch.where(total > 0, total, 1.0)
    return einops.einsum(weights, v, "b ... t s, b ... s c -> b ... t c"), weights


# %% heads-folded-into-the-batch
"""Heads folded into the batch, bmm, log-sum-exp; dead rows are taken out before the softmax."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    lead = q.shape[:-2]
    T, D, S, C = q.shape[-2], q.shape[-1], k.shape[-2], v.shape[-1]
    H = lead[1] if len(lead) == 2 else 1
    qf, kf, vf = q.reshape(-1, T, D), k.reshape(-1, S, D), v.reshape(-1, S, C)
    scores = torch.bmm(qf, kf.transpose(1, 2))
    scores = scores / math.sqrt(D) if beta is None else scores * beta
    blocked = torch.zeros(scores.shape, dtype=torch.bool, device=q.device)
    if key_padding_mask is not None:
        blocked |= key_padding_mask.repeat_interleave(H, dim=0).unsqueeze(1)
    if causal:
        blocked |= torch.triu(torch.ones(T, S, device=q.device), S - T + 1).bool()
    dead = blocked.all(-1, keepdim=True)
    scores = scores.masked_fill(dead, 0.0).masked_fill(blocked & ~dead, -math.inf)
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True)).masked_fill(dead, 0.0)
    return torch.bmm(weights, vf).view(*lead, T, C), weights.view(*lead, T, S)


# %% running-maximum-over-keys
"""One pass over the keys with a running maximum and running sums, as fast kernels do it; weights at the
end."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    scale = q.size(-1) ** -0.5 if beta is None else beta
    top = torch.full_like(q[..., :1], torch.finfo(q.dtype).min).detach()  # [..., T, 1]
    total = torch.zeros_like(top)
    acc = torch.zeros_like(q[..., :1]) * v[..., :1, :]  # [..., T, C]
    queries = torch.arange(T, device=q.device)[:, None]
    columns, keeps = [], []
    for j in range(S):
        score = scale * (q * k[..., j : j + 1, :]).sum(-1, keepdim=True)  # [..., T, 1]
        keep = torch.ones_like(score, dtype=torch.bool)
        if causal:
            keep = keep & (queries >= j - (S - T))
        if key_padding_mask is not None:
            keep = keep & ~key_padding_mask[:, j].view(-1, *[1] * (q.dim() - 1))
        new = torch.where(keep, torch.maximum(top, score.detach()), top)
        fade = torch.exp(top - new)
        e = torch.exp(torch.where(keep, score - new, 0.0)) * keep
        total, acc, top = total * fade + e, acc * fade + e * v[..., j : j + 1, :], new
        columns.append(score)
        keeps.append(keep)
    total = torch.where(total > 0, total, 1.0)
    keep = torch.cat(keeps, -1)
    weights = torch.exp(torch.where(keep, torch.cat(columns, -1) - top, 0.0)) * keep / total
    return acc / total, weights
