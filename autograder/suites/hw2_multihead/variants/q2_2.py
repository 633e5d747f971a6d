# %% q1-7-and-q2-1
"""The earlier answers put together: split, attention, merge, project. In training the dropped weights meet the
values once more."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads, self.p = n_heads, dropout
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias))

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        projected = (self.q_proj(query), self.k_proj(key), self.v_proj(value))
        q, k, v = (split_heads(x, self.n_heads) for x in projected)  # [B, H, N, Dh]
        out, weights = attention(q, k, v, key_padding_mask, causal)
        if self.training and self.p > 0:
            out = F.dropout(weights, self.p) @ v
        return self.o_proj(merge_heads(out)), weights


# %% head-by-head
"""A loop over heads, each with its rows of the weight matrices; output parts are summed through slices of
o_proj."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{d_model} is not divisible by {n_heads}")
        self.n_heads = n_heads
        self.width = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.drop = nn.Dropout(dropout)

    def _part(self, proj, x, rows):
        return F.linear(x, proj.weight[rows], None if proj.bias is None else proj.bias[rows])  # [B, N, Dh]

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        T, S = query.shape[1], key.shape[1]
        blocked = torch.zeros(query.shape[0], T, S, dtype=torch.bool, device=query.device)
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask.unsqueeze(1)
        if causal:
            i, j = torch.arange(T, device=query.device), torch.arange(S, device=query.device)
            blocked = blocked | (j[None, :] > i[:, None] + S - T)
        total, weights = 0.0, []
        for h in range(self.n_heads):
            rows = slice(h * self.width, (h + 1) * self.width)
            q, k = self._part(self.q_proj, query, rows), self._part(self.k_proj, key, rows)
            v = self._part(self.v_proj, value, rows)
            scores = torch.bmm(q, k.transpose(1, 2)) * self.width**-0.5
            a = torch.softmax(scores.masked_fill(blocked, float("-inf")), dim=-1).nan_to_num(0.0)
            total = total + F.linear(torch.bmm(self.drop(a), v), self.o_proj.weight[:, rows])
            weights.append(a)
        if self.o_proj.bias is not None:
            total = total + self.o_proj.bias
        return total, torch.stack(weights, 1)


# %% einsum-with-folded-weights
"""Weight matrices seen as [H, Dh, D] and contracted by einsum; exponentials written out; the scale is a power
of a persistent extra buffer."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError("heads must share the columns evenly")
        self.n_heads = n_heads
        self.dropout = dropout
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_model, d_model, bias=bias) for _ in range(4))
        self.register_buffer("head_width", torch.tensor(float(d_model // n_heads)))

    def _heads(self, proj, x):
        W = proj.weight.view(self.n_heads, -1, x.shape[-1])  # [H, Dh, D]
        y = torch.einsum("bnc,hdc->bhnd", x, W)
        return y if proj.bias is None else y + proj.bias.view(self.n_heads, 1, -1)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q, k, v = self._heads(self.q_proj, query), self._heads(self.k_proj, key), self._heads(self.v_proj, value)
        z = torch.einsum("bhtd,bhsd->bhts", q * self.head_width.to(q.dtype).rsqrt(), k)
        keep = torch.ones_like(z, dtype=torch.bool)
        if causal:
            keep = keep.tril(z.shape[-1] - z.shape[-2])
        if key_padding_mask is not None:
            keep = keep & ~key_padding_mask[:, None, None]
        top = z.masked_fill(~keep, torch.finfo(z.dtype).min).amax(-1, keepdim=True).detach()
        e = torch.exp(torch.where(keep, z - top, 0.0)) * keep
        weights = e / e.sum(-1, keepdim=True).clamp(min=torch.finfo(z.dtype).tiny)
        dropped = F.dropout(weights, self.dropout, self.training)
        W = self.o_proj.weight.view(-1, self.n_heads, v.shape[-1])  # [D, H, Dh]
        out = torch.einsum("bhts,bhsd,chd->btc", dropped, v, W)
        return (out if self.o_proj.bias is None else out + self.o_proj.bias), weights


# %% fused-projection-and-finite-fill
"""The three weights joined for one product where query, key and value are one tensor; a finite fill, blocked
weights zeroed afterwards; the returned weights are those after dropout, as nn.MultiheadAttention gives them."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads > 0:
            raise ValueError(f"cannot split d_model={d_model} over n_heads={n_heads}")
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        B, T, S = query.size(0), query.size(1), key.size(1)
        parts = (self.q_proj, self.k_proj, self.v_proj)
        if query is key and key is value:
            weight = torch.cat([p.weight for p in parts])
            bias = None if self.q_proj.bias is None else torch.cat([p.bias for p in parts])
            q, k, v = F.linear(query, weight, bias).split(self.d_model, dim=-1)
        else:
            q, k, v = (p(x) for p, x in zip(parts, (query, key, value), strict=True))
        q = q.reshape(B, T, self.n_heads, self.d_head).transpose(1, 2)
        k = k.reshape(B, S, self.n_heads, self.d_head).permute(0, 2, 3, 1)  # [B, H, Dh, S]
        v = v.reshape(B, S, self.n_heads, self.d_head).transpose(1, 2)
        allowed = torch.ones(1, 1, T, S, dtype=torch.bool, device=query.device)
        if causal:
            allowed = torch.tril(allowed, S - T)
        if key_padding_mask is not None:
            allowed = allowed & key_padding_mask.logical_not().view(B, 1, 1, S)
        scores = torch.where(allowed, q.matmul(k) / math.sqrt(self.d_head), torch.finfo(q.dtype).min)
        weights = self.attn_dropout(torch.where(allowed, scores.softmax(-1), 0.0))
        return self.o_proj(weights.matmul(v).transpose(1, 2).reshape(B, T, self.d_model)), weights


# %% heads-folded-into-the-batch
"""Heads folded into the batch as torch's own code does it, baddbmm with an additive mask, rows without keys
kept apart; own helper module around the softmax."""
class _SafeSoftmax(nn.Module):
    def forward(self, scores, blocked):
        dead = blocked.all(-1, keepdim=True)
        logits = scores.masked_fill(dead, 0.0).masked_fill(blocked & ~dead, -math.inf)
        return torch.exp(F.log_softmax(logits, -1)).masked_fill(dead, 0.0)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        if d_model % n_heads != 0:
            raise ValueError("d_model % n_heads != 0")
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.normalise = _SafeSoftmax()
        self.thin_out = nn.Dropout(p=dropout)

    def _fold(self, x):
        B, N, D = x.shape
        return x.view(B, N, self.n_heads, -1).transpose(1, 2).reshape(B * self.n_heads, N, -1)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        (B, T, D), S, H = query.shape, key.shape[1], self.n_heads
        q, k, v = self._fold(self.q_proj(query)), self._fold(self.k_proj(key)), self._fold(self.v_proj(value))
        blocked = torch.zeros(B * H, T, S, dtype=torch.bool, device=query.device)
        if key_padding_mask is not None:
            blocked |= key_padding_mask.repeat_interleave(H, 0)[:, None, :]
        if causal:
            blocked |= torch.triu(torch.ones(T, S, device=query.device), diagonal=1 + S - T).bool()
        scores = torch.baddbmm(torch.zeros_like(q[:, :, :1] * k[:, None, :, 0]), q, k.mT, alpha=(D // H) ** -0.5)
        weights = self.normalise(scores, blocked)
        out = torch.bmm(self.thin_out(weights), v).view(B, H, T, D // H)
        return self.o_proj(out.transpose(1, 2).flatten(2)), weights.view(B, H, T, S)


# %% query-by-query
"""Loops over queries, each attends only to the keys it may see by position; padded keys are weighed with
zero."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("uneven heads")
        self.n_heads = n_heads
        self.drop = nn.Dropout(dropout)
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        T, S = query.shape[1], key.shape[1]
        q, k, v = (
            torch.stack(proj(x).chunk(self.n_heads, -1), 1)
            for proj, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        real = torch.ones(S, dtype=q.dtype, device=q.device)
        if key_padding_mask is not None:
            real = (~key_padding_mask).to(q.dtype)[:, None]  # [B, 1, S]
        outs, rows = [], []
        for i in range(T):
            seen = min(S, max(0, i + S - T + 1)) if causal else S
            row = torch.zeros_like(k[..., 0])  # [B, H, S]
            if seen:
                z = (q[:, :, i : i + 1] * k[:, :, :seen]).sum(-1) / math.sqrt(q.shape[-1])  # [B, H, seen]
                keep = real[..., :seen].expand_as(z)
                shift = torch.where(keep > 0, z, torch.finfo(z.dtype).min).amax(-1, keepdim=True).detach()
                e = torch.exp(torch.where(keep > 0, z - shift, 0.0)) * keep
                total = e.sum(-1, keepdim=True)
                row = F.pad(e / torch.where(total > 0, total, 1.0), (0, S - seen))
            rows.append(row)
            outs.append((self.drop(row)[..., None] * v).sum(2))  # [B, H, Dh]
        out = torch.stack(outs, 2).transpose(1, 2).flatten(2)
        return self.o_proj(out), torch.stack(rows, 2)
