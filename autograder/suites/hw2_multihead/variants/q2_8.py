# %% running-state
"""A recurrence over the keys: one state [F, Dv] and one normaliser, read out when a query's last key has come
in."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    T, S = q.shape[-2], k.shape[-2]
    state = torch.zeros_like(fk[..., :1, :].mT @ v[..., :1, :])  # [..., F, Dv]
    total = torch.zeros_like(fk[..., 0, :])  # [..., F]
    if not causal:
        for j in range(S):
            state = state + fk[..., j, :, None] * v[..., j, None, :]
            total = total + fk[..., j, :]
        return fq @ state / (fq @ total.unsqueeze(-1))
    rows, added = [], 0
    for i in range(T):
        while added < i + S - T + 1:
            state = state + fk[..., added, :, None] * v[..., added, None, :]
            total = total + fk[..., added, :]
            added += 1
        top = (fq[..., i, None, :] @ state).squeeze(-2)
        below = (fq[..., i, :] * total).sum(-1, keepdim=True)
        rows.append(top / below if added else top)
    return torch.stack(rows, -2)


# %% ones-beside-the-values
"""The normaliser is one more value, always 1: numerator and denominator come out of the same product."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    T, S = fq.shape[-2], fk.shape[-2]
    extended = torch.cat([v, torch.ones_like(v[..., :1])], -1)  # [..., S, Dv + 1]
    if causal:
        prefix = torch.cumsum(torch.einsum("...sf,...sv->...sfv", fk, extended), dim=-3)  # [..., S, F, Dv + 1]
        prefix = torch.cat([torch.zeros_like(prefix[..., :1, :, :]), prefix], -3)
        n_seen = torch.clamp(torch.arange(1, T + 1, device=q.device) + S - T, min=0)
        both = (fq.unsqueeze(-2) @ prefix.index_select(-3, n_seen)).squeeze(-2)
    else:
        both = fq @ torch.einsum("...sf,...sv->...fv", fk, extended)
    out, total = both[..., :-1], both[..., -1:]
    return out / torch.where(total == 0, torch.ones_like(total), total)


# %% einsum-and-cumsum
"""Sums over keys by einsum; the causal case by cumulative sums, padded in front where queries outnumber
keys."""
def linear_attention(q, k, v, feature_map, causal=False):
    phi_q, phi_k = feature_map(q), feature_map(k)
    if not causal:
        kv = torch.einsum("...sf,...sv->...fv", phi_k, v)
        z = torch.einsum("...tf,...f->...t", phi_q, phi_k.sum(dim=-2))
        return torch.einsum("...tf,...fv->...tv", phi_q, kv) / z[..., None]
    T, S = q.size(-2), k.size(-2)
    kv = (phi_k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=-3)
    z = phi_k.cumsum(dim=-2)
    if T > S:
        kv, z = F.pad(kv, (0, 0, 0, 0, T - S, 0)), F.pad(z, (0, 0, T - S, 0))
    else:
        kv, z = kv[..., S - T :, :, :], z[..., S - T :, :]
    top = torch.einsum("...tf,...tfv->...tv", phi_q, kv)
    below = torch.einsum("...tf,...tf->...t", phi_q, z).unsqueeze(-1)
    dead = (torch.arange(T, device=q.device) < T - S)[:, None]
    return top / below.masked_fill(dead, 1.0)


# %% blocks-of-four
"""Causal in blocks of four queries: what came before by the running state, inside the block by a small
triangle."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    v1 = F.pad(v, (0, 1), value=1.0)
    if not causal:
        both = fq @ (fk.mT @ v1)
        return both[..., :-1] / both[..., -1:]
    T, S = q.shape[-2], k.shape[-2]
    if T > S:  # the first queries see nothing: keys that weigh nothing stand in front
        fk, v1, S = F.pad(fk, (0, 0, T - S, 0)), F.pad(v1, (0, 0, T - S, 0)), T
    head = S - T  # keys that every query sees
    state = fk[..., :head, :].mT @ v1[..., :head, :]
    parts = []
    for start in range(0, T, 4):
        queries = fq[..., start : start + 4, :]
        keys, values = fk[..., head + start : head + start + 4, :], v1[..., head + start : head + start + 4, :]
        parts.append(queries @ state + (queries @ keys.mT).tril() @ values)
        state = state + keys.mT @ values
    both = torch.cat(parts, -2)
    return both[..., :-1] / both[..., -1:].masked_fill(both[..., -1:] == 0, 1.0)


# %% one-value-column-at-a-time
"""Column by column of the values: the state is a vector, never a matrix."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    T, S = q.shape[-2], k.shape[-2]

    def gather(column):  # column [..., S, 1] -> sum over seen keys of g(q) . g(k) column: [..., T, 1]
        terms = fk * column
        if not causal:
            return fq @ terms.sum(-2).unsqueeze(-1)
        sums = terms.cumsum(-2)
        rows = torch.arange(T, device=q.device) + S - T
        return (fq * sums[..., rows.clamp(min=0), :]).sum(-1, keepdim=True) * (rows >= 0).to(v.dtype)[:, None]

    total = gather(torch.ones_like(v[..., :1]))
    out = torch.cat([gather(v[..., c : c + 1]) for c in range(v.shape[-1])], -1)
    return out / (total + (total == 0))
