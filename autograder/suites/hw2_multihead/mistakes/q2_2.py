# %% scaled-by-model-width
"""Your scores are divided by the root of d_model: the dot product of one head runs over Dh numbers only, so the
weights come out too flat. With one head you would not notice."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(query.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% view-without-transpose
"""Your heads have the right shape and the wrong numbers: a `view` straight to [B, H, N, Dh] cuts each head out
of several tokens. Your own split_heads of the last question does it right."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = self.q_proj(query).view(len(query), self.n_heads, query.shape[1], -1)  # [B, H, T, Dh]
        k = self.k_proj(key).view(len(key), self.n_heads, key.shape[1], -1)  # [B, H, S, Dh]
        v = self.v_proj(value).view(len(value), self.n_heads, value.shape[1], -1)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj((self.dropout(weights) @ v).reshape(query.shape))
        return out, weights


# %% heads-interleaved
"""Your heads take every H-th column of the projections. Head h is a block of Dh neighbouring columns: with the
weights of nn.MultiheadAttention the two do not agree."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def _split(self, x):
        return x.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = self._split(self.q_proj(query))  # [B, H, T, Dh]
        k = self._split(self.k_proj(key))  # [B, H, S, Dh]
        v = self._split(self.v_proj(value))
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj((self.dropout(weights) @ v).permute(0, 2, 3, 1).flatten(2))
        return out, weights


# %% one-head
"""Your weights are the same for every head: the projections are never split, so one head of width d_model does
all the work."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = self.q_proj(query)[:, None]  # [B, H, T, Dh]
        k = self.k_proj(key)[:, None]  # [B, H, S, Dh]
        v = self.v_proj(value)[:, None]
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights.expand(-1, self.n_heads, -1, -1)


# %% o-proj-forgotten
"""You return the merged heads: `o_proj` exists but is never applied. Without it the heads never exchange
anything."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = merge_heads(self.dropout(weights) @ v)
        return out, weights


# %% o-proj-without-bias
"""Your output lacks `o_proj`'s bias: with `bias=True` all four projections have one, as in
nn.MultiheadAttention."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = F.linear(merge_heads(self.dropout(weights) @ v), self.o_proj.weight)
        return out, weights


# %% bias-argument-ignored
"""`bias=False` changes nothing in your layer: the argument never reaches the four projections."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.o_proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% values-from-key
"""Your values are computed from `key`. In self-attention nobody sees it; give three different tensors and look
again."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(key), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% query-length-for-keys
"""With fewer queries than keys your layer stops or scrambles: keys and values are reshaped with the length of
the query. In cross-attention the two lengths differ."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        B, N, D = query.shape
        q = self.q_proj(query).view(B, N, self.n_heads, -1).transpose(1, 2)  # [B, H, T, Dh]
        k = self.k_proj(key).view(B, N, self.n_heads, -1).transpose(1, 2)  # [B, H, S, Dh]
        v = self.v_proj(value).view(B, N, self.n_heads, -1).transpose(1, 2)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% padding-polarity-inverted
"""You attend to the padding only: on the card True means padding, and you read True as "may be attended to"."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(~key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% padding-on-queries
"""Your padding mask blocks rows instead of columns: it stands on the query axis. Padding is about keys; a
padded key must lose its weight in every row."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, :, None], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% padding-repeated-in-wrong-order
"""Sentences get one another's padding: when you repeat the mask for the heads, the copies of one sentence must
stay together, because the batch axis comes before the head axis."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            repeated = key_padding_mask.repeat(self.n_heads, 1).view(len(q), self.n_heads, 1, S)
            scores = scores.masked_fill(repeated, -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% masked-after-softmax
"""Your rows sum to less than 1 where something is blocked: the weights are zeroed after the softmax, when
blocked keys have already had their share of the denominator. Block the scores."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        blocked = torch.zeros_like(scores, dtype=torch.bool)
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            blocked = blocked | later
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask[:, None, None, :]
        weights = softargmax(scores).masked_fill(blocked, 0.0)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% causal-top-left
"""With fewer queries than keys your causal mask starts in the wrong corner: the last query must see every key,
so the triangle is aligned at the bottom right."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% one-mask-at-a-time
"""Each of your masks works alone. Given both, only the padding is honoured and the future can be seen: an
`elif` or an overwritten mask lets one of them win. A key is blocked if either says so."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        elif causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% dead-rows-nan
"""A row with every key blocked gives NaN: a softmax over nothing but -inf is 0 / 0. The card asks for zero
weights there, so that the output is `o_proj`'s bias."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = torch.softmax(scores, -1)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% dead-rows-uniform
"""A row with every key blocked gets uniform weights: when every score is the same large negative number, the
softmax cannot tell that nothing may be seen. Such rows are zero."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -1e9)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -1e9)
        weights = torch.softmax(scores, -1)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% dead-rows-without-bias
"""Where every key is blocked you set the whole output to zero. Attention is zero there, and `o_proj` still adds
its bias."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        dead = (weights == 0).all(-1)[:, 0, :, None]  # [B, T, 1]
        return out.masked_fill(dead, 0.0), weights


# %% weights-averaged-over-heads
"""Your weights have shape [B, T, S]: the average over the heads, which is what nn.MultiheadAttention returns by
default. Return those of each head, [B, H, T, S]."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights.mean(1)


# %% dropout-active-in-eval
"""In evaluation mode two calls with the same input differ: `F.dropout` is active unless you tell it about
`self.training`."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = dropout

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(F.dropout(weights, self.dropout) @ v))
        return out, weights


# %% dropout-on-output
"""Your dropout acts on something else than the attention weights: on the values, on the heads or on the output.
Inside this layer it acts on the weights, after the softmax and before they meet the values."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.dropout(self.o_proj(merge_heads(weights @ v)))
        return out, weights


# %% dropout-ignored
"""In training mode your layer drops nothing, whatever `dropout` says: the argument is never used."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} does not split into {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(weights @ v))
        return out, weights


# %% no-value-error
"""A width that does not split evenly goes through, or stops with some other error. Refuse it when the layer is made,
with `raise ValueError(...)`."""
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, S]
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            scores = scores.masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        out = self.o_proj(merge_heads(self.dropout(weights) @ v))
        return out, weights


# %% dropout-on-scores
"""Your dropout acts on the scores, before the softmax: a score set to 0 is not a key that is dropped, and a key that
is alone keeps its weight. Drop weights after the softmax."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q, k, v = (split_heads(p(x), self.n_heads) for p, x in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        T, S = q.shape[2], k.shape[2]
        scores = F.dropout(q @ k.mT / math.sqrt(q.shape[-1]), self.dropout, self.training)  # [B, H, T, S]
        if causal:
            scores = scores.masked_fill(torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1), -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -math.inf)
        weights = softargmax(scores)
        return self.o_proj(merge_heads(weights @ v)), weights


# %% dropout-rate-fixed
"""Your layer drops half of the weights whatever `dropout` says: pass the number that the module was made with."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__(d_model, n_heads, 0.5 if dropout else 0.0, bias)


# %% dropout-without-masks-only
"""Your dropout is forgotten when there is a causal mask: in training mode weights are dropped with every mask."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        rate, self.dropout = self.dropout, 0.0 if causal else self.dropout
        result = super().forward(query, key, value, key_padding_mask, causal)
        self.dropout = rate
        return result


# %% mask-of-an-earlier-call
"""Your module keeps the mask of its first call and uses it again when the shapes are the same. Padding differs from
call to call: make the mask anew."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        kept = self.__dict__.setdefault("kept", {})
        if key_padding_mask is not None:
            key_padding_mask = kept.setdefault(key_padding_mask.shape, key_padding_mask)
        return super().forward(query, key, value, key_padding_mask, causal)


# %% parameter-too-many
"""Your module has a parameter besides the four projections. Weights are put in by name, and one that is not asked for
would never be set: a constant is a plain attribute or a buffer."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True):
        super().__init__(d_model, n_heads, dropout, bias)
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        out, weights = super().forward(query * self.temperature, key, value, key_padding_mask, causal)
        return out, weights


# %% softmax-overflows
"""With large scores your output is NaN or wrong: exp overflows. Subtract the largest score of each row first, which
changes nothing in the weights."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q, k, v = (split_heads(p(x), self.n_heads) for p, x in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        T, S = q.shape[2], k.shape[2]
        e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))  # [B, H, T, S]
        if causal:
            e = e.masked_fill(torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1), 0.0)
        if key_padding_mask is not None:
            e = e.masked_fill(key_padding_mask[:, None, None, :], 0.0)
        total = e.sum(-1, keepdim=True)
        weights = e / total.masked_fill(total == 0, 1.0)
        return self.o_proj(merge_heads(F.dropout(weights, self.dropout, self.training) @ v)), weights


# %% causal-more-queries-than-keys
"""With more queries than keys your causal mask is that of a triangle in the upper left corner. The last query is level
with the last key there too, so the first T - S queries see nothing."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        T, S = query.shape[1], key.shape[1]
        if not causal or T <= S:
            return super().forward(query, key, value, key_padding_mask, causal)
        early = super().forward(query[:, :S], key, value, key_padding_mask, True)
        late = super().forward(query[:, S:], key, value, key_padding_mask, False)
        return torch.cat([early[0], late[0]], 1), torch.cat([early[1], late[1]], 2)


# %% causal-ignored
"""Your `causal=True` changes nothing here: query i still sees keys after its own place. Is the argument used on every
path, in eval mode too?"""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        return super().forward(query, key, value, key_padding_mask, False)


# %% nothing-left-by-two-masks
"""A query can lose all its keys by the two masks together, though neither blocks them all: with padding on the left the
first queries of a causal layer see nothing. Your weights are NaN there. Ask for such rows once both masks are in."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q, k, v = (split_heads(p(x), self.n_heads) for p, x in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        T, S = q.shape[2], k.shape[2]
        hide = torch.zeros(len(q), 1, T, S, dtype=torch.bool, device=q.device)
        empty = torch.zeros(len(q), 1, T, 1, dtype=torch.bool, device=q.device)
        if causal:
            later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
            hide, empty = hide | later, empty | later.all(-1, keepdim=True)
        if key_padding_mask is not None:
            padding = key_padding_mask[:, None, None, :]
            hide, empty = hide | padding, empty | padding.all(-1, keepdim=True)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hide & ~empty, -math.inf)
        weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
        return self.o_proj(merge_heads(F.dropout(weights, self.dropout, self.training) @ v)), weights


# %% values-from-query-if-shared
"""Where query and key are one tensor your layer takes the values from it too. `value` may still be another: project it,
whatever the others are."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        if key is query:
            value = query
        return super().forward(query, key, value, key_padding_mask, causal)


# %% weights-detached
"""The weights that you return are cut off from the graph: a loss on them would teach nothing. Return them without
`detach`."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        out, weights = super().forward(query, key, value, key_padding_mask, causal)
        return out, weights.detach()


# %% dropout-shared-by-heads
"""In training mode all your heads lose the same weights: one dropout mask is made and used for every head. Each weight
of each head is dropped on its own."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q, k, v = (split_heads(p(x), self.n_heads) for p, x in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        heads, weights = attention(q, k, v, key_padding_mask, causal)
        if self.training and self.dropout > 0:
            heads = weights * F.dropout(torch.ones_like(weights[:, :1]), self.dropout) @ v
        return self.o_proj(merge_heads(heads)), weights


# %% float32-inside
"""Your results have the precision of float32 in a float64 layer: somewhere a number is made in float32, such as
`torch.tensor(d_head)` under a root, or a softmax with its own dtype. Use `math.sqrt`, and keep the input's dtype."""
_Sound = MultiHeadAttention


class MultiHeadAttention(_Sound):
    def forward(self, query, key, value, key_padding_mask=None, causal=False):
        q, k, v = (split_heads(p(x), self.n_heads) for p, x in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        beta = 1 / torch.sqrt(torch.tensor(q.shape[-1], dtype=torch.float32))
        heads, weights = attention(q, k, v, key_padding_mask, causal, beta=float(beta))
        if self.training and self.dropout > 0:
            heads = F.dropout(weights, self.dropout) @ v
        return self.o_proj(merge_heads(heads)), weights
