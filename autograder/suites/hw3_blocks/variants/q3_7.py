# %% branches-in-a-loop
"""The two halves as a list of (norm, branch), one loop for both orders."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, "gelu", dropout)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, key_padding_mask=None):
        def attend(h):
            return self.self_attn(h, h, h, key_padding_mask=key_padding_mask)[0]

        for norm, branch in ((self.norm1, attend), (self.norm2, self.ff)):
            x = x + self.drop(branch(norm(x))) if self.norm_first else norm(x + self.drop(branch(x)))
        return x


# %% own-parts
"""Own attention in one class (einsum, finite fill), own norm with weight and bias, own feed-forward."""
class Heads(nn.Module):
    def __init__(self, d_model, n_heads, dropout):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("the heads must share the width evenly")
        self.n_heads, self.p = n_heads, dropout
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.o_proj = nn.Linear(d_model, d_model)

    def forward(self, x, pad):
        B, N, D = x.shape
        H, W = self.n_heads, D // self.n_heads
        q, k, v = (p(x).view(B, N, H, W) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = torch.einsum("bihw,bjhw->bhij", q, k) * W**-0.5
        if pad is not None:
            scores = scores.masked_fill(pad[:, None, None, :], torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, -1)
        if pad is not None:
            weights = weights.masked_fill(pad[:, None, None, :], 0.0)
        weights = F.dropout(weights, self.p, self.training)
        return self.o_proj(torch.einsum("bhij,bjhw->bihw", weights, v).reshape(B, N, D))


class Norm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        c = x - x.mean(-1, keepdim=True)
        return self.weight * c * torch.rsqrt(c.pow(2).mean(-1, keepdim=True) + 1e-5) + self.bias


class TwoLayers(nn.Module):
    def __init__(self, d_model, d_ff, dropout):
        super().__init__()
        self.fc1, self.fc2, self.drop = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.drop(F.gelu(self.fc1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = Heads(d_model, n_heads, dropout)
        self.ff = TwoLayers(d_model, d_ff, dropout)
        self.norm1, self.norm2 = Norm(d_model), Norm(d_model)
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.pre = bool(norm_first)

    def forward(self, x, key_padding_mask=None):
        if self.pre:
            x = x + self.drop1(self.self_attn(self.norm1(x), key_padding_mask))
            x = x + self.drop2(self.ff(self.norm2(x)))
        else:
            x = self.norm1(x + self.drop1(self.self_attn(x, key_padding_mask)))
            x = self.norm2(x + self.drop2(self.ff(x)))
        return x


# %% own-layer-norm-function
"""q3_1's layer_norm with the parameters of nn.LayerNorm; two small methods, one per order."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout=dropout)
        self.p = dropout
        self.forward_ = self.pre if norm_first else self.post

    def norm(self, norm, x):
        return layer_norm(x, norm.weight, norm.bias, norm.eps)

    def drop(self, x):
        return F.dropout(x, self.p, training=self.training)

    def pre(self, x, mask):
        h = self.norm(self.norm1, x)
        a = x + self.drop(self.self_attn(h, h, h, mask, False)[0])
        return a + self.drop(self.ff(self.norm(self.norm2, a)))

    def post(self, x, mask):
        a = self.norm(self.norm1, x + self.drop(self.self_attn(x, x, x, mask, False)[0]))
        return self.norm(self.norm2, a + self.drop(self.ff(a)))

    def forward(self, x, key_padding_mask=None):
        return self.forward_(x, key_padding_mask)


# %% fused-projection
"""The three projections in one product with stacked weights; the mask is always there, and a buffer too."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model, eps=1e-5)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-5)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first
        self.register_buffer("seen", torch.zeros(1, dtype=torch.long))

    def mix(self, x, pad):
        a = self.self_attn
        W = torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight])
        b = torch.cat([a.q_proj.bias, a.k_proj.bias, a.v_proj.bias])
        q, k, v = (split_heads(t, a.n_heads) for t in F.linear(x, W, b).chunk(3, -1))  # [B, H, N, Dh]
        weights = softargmax((q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(pad[:, None, None], -math.inf))
        weights = F.dropout(weights, self.dropout.p, self.training)
        return self.dropout(a.o_proj(merge_heads(weights @ v)))

    def forward(self, x, key_padding_mask=None):
        pad = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        if key_padding_mask is not None:
            pad = pad | key_padding_mask
        first, second = self.norm1, self.norm2
        x = x + self.mix(first(x), pad) if self.norm_first else first(x + self.mix(x, pad))
        inner = second(x) if self.norm_first else x
        x = x + self.dropout(self.ff(inner))
        return x if self.norm_first else second(x)


# %% sentence-by-sentence
"""A loop over the batch; keys that are padding are removed instead of masked."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        for i in (1, 2):
            setattr(self, f"norm{i}", nn.LayerNorm(d_model))
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, mask):
        if mask is None:
            return self.dropout(self.self_attn(x, x, x)[0])
        rows = []
        for row, padding in zip(x, mask, strict=True):
            keys = row[~padding][None]  # [1, S, D]
            if keys.shape[1] == 0:
                rows.append(self.self_attn.o_proj.bias.expand_as(row))
            else:
                rows.append(self.self_attn(row[None], keys, keys)[0][0])
        return self.dropout(torch.stack(rows))

    def forward(self, x, key_padding_mask=None):
        if not self.norm_first:
            h = self.norm1(x + self.attend(x, key_padding_mask))
            return self.norm2(h + self.dropout(self.ff(h)))
        h = x + self.attend(self.norm1(x), key_padding_mask)
        return h + self.dropout(self.ff(self.norm2(h)))
