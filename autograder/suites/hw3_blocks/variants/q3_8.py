# %% branches-in-a-loop
"""Three (norm, branch) pairs and one loop for both orders."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, "gelu", dropout)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, memory, memory_padding_mask=None):
        branches = [
            (self.norm1, lambda h: self.self_attn(h, h, h, causal=True)[0]),
            (self.norm2, lambda h: self.cross_attn(h, memory, memory, memory_padding_mask)[0]),
            (self.norm3, self.ff),
        ]
        for norm, branch in branches:
            if self.norm_first:
                x = x + self.drop(branch(norm(x)))
            else:
                x = norm(x + self.drop(branch(x)))
        return x


# %% own-attention
"""One attention class with a general mask, finite fill and a causal triangle kept as a buffer that grows."""
class MaskedHeads(nn.Module):
    def __init__(self, d_model, n_heads, dropout):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads = n_heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, nn.Linear(d_model, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, source, blocked):
        """blocked: bool, broadcasts to [B, T, S]."""
        B, T, D = x.shape
        q = self.q_proj(x).reshape(B, T, self.n_heads, -1).permute(0, 2, 1, 3)
        k = self.k_proj(source).reshape(B, source.shape[1], self.n_heads, -1).permute(0, 2, 3, 1)
        v = self.v_proj(source).reshape(B, source.shape[1], self.n_heads, -1).permute(0, 2, 1, 3)
        scores = torch.matmul(q, k) / math.sqrt(D / self.n_heads)
        blocked = blocked.unsqueeze(1)
        weights = scores.masked_fill(blocked, -1e9).softmax(-1).masked_fill(blocked, 0.0)
        return self.o_proj(torch.matmul(self.drop(weights), v).permute(0, 2, 1, 3).reshape(B, T, D))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MaskedHeads(d_model, n_heads, dropout)
        self.cross_attn = MaskedHeads(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop1, self.drop2, self.drop3 = nn.Dropout(dropout), nn.Dropout(dropout), nn.Dropout(dropout)
        self.norm_first = norm_first
        self.register_buffer("later", torch.ones(1, 4, 4, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x, memory, memory_padding_mask=None):
        T = x.shape[1]
        if T > self.later.shape[1]:
            self.later = torch.ones(1, T, T, dtype=torch.bool, device=x.device).triu(1)
        future = self.later[:, :T, :T]
        if memory_padding_mask is None:
            hidden = torch.zeros(memory.shape[:2], dtype=torch.bool, device=memory.device)
        else:
            hidden = memory_padding_mask
        hidden = hidden[:, None, :]
        if self.norm_first:
            h = self.norm1(x)
            x = x + self.drop1(self.self_attn(h, h, future))
            x = x + self.drop2(self.cross_attn(self.norm2(x), memory, hidden))
            return x + self.drop3(self.ff(self.norm3(x)))
        x = self.norm1(x + self.drop1(self.self_attn(x, x, future)))
        x = self.norm2(x + self.drop2(self.cross_attn(x, memory, hidden)))
        return self.norm3(x + self.drop3(self.ff(x)))


# %% built-on-an-encoder-layer
"""A subclass of the encoder layer: its attention and feed-forward are reused, the third norm comes on top."""
class DecoderLayer(EncoderLayer):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__(d_model, n_heads, d_ff, dropout, norm_first)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.norm3 = nn.LayerNorm(d_model)
        self.rate = dropout
        self.pre = norm_first

    def add(self, x, branch, norm):
        inner = norm(x) if self.pre else x
        total = x + F.dropout(branch(inner), self.rate, self.training)
        return total if self.pre else norm(total)

    def forward(self, x, memory, memory_padding_mask=None):
        x = self.add(x, lambda h: self.self_attn(h, h, h, None, True)[0], self.norm1)
        x = self.add(x, lambda h: self.cross_attn(h, memory, memory, memory_padding_mask, False)[0], self.norm2)
        return self.add(x, self.ff, self.norm3)


# %% q1-attention-by-hand
"""Projections by hand around hw1's attention on [B, H, N, Dh]; dropout on the weights; q3_1's layer norm."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def mha(self, m, x, source, **masks):
        q, k, v = m.q_proj(x), m.k_proj(source), m.v_proj(source)
        q, k, v = (split_heads(t, m.n_heads) for t in (q, k, v))
        _, weights = attention(q, k, v, **masks)
        return self.dropout(m.o_proj(merge_heads(self.dropout(weights) @ v)))

    def norm(self, which, x):
        return layer_norm(x, which.weight, which.bias)

    def forward(self, x, memory, memory_padding_mask=None):
        hide = {"key_padding_mask": memory_padding_mask}
        if self.norm_first:
            h = self.norm(self.norm1, x)
            x = x + self.mha(self.self_attn, h, h, causal=True)
            x = x + self.mha(self.cross_attn, self.norm(self.norm2, x), memory, **hide)
            return x + self.dropout(self.ff(self.norm(self.norm3, x)))
        x = self.norm(self.norm1, x + self.mha(self.self_attn, x, x, causal=True))
        x = self.norm(self.norm2, x + self.mha(self.cross_attn, x, memory, **hide))
        return self.norm(self.norm3, x + self.dropout(self.ff(x)))


# %% token-by-token
"""Self-attention one query at a time over the tokens so far: causal without a mask."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2, self.norm3 = [nn.LayerNorm(d_model) for _ in "123"]
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def so_far(self, h):
        outs = []
        for t in range(h.shape[1]):
            past = h[:, : t + 1]
            outs.append(self.self_attn(h[:, t : t + 1], past, past)[0])
        return self.drop(torch.cat(outs, dim=1))

    def forward(self, x, memory, memory_padding_mask=None):
        def cross(h):
            out, _ = self.cross_attn(h, memory, memory, key_padding_mask=memory_padding_mask)
            return self.drop(out)

        if self.norm_first:
            a = x + self.so_far(self.norm1(x))
            b = a + cross(self.norm2(a))
            return b + self.drop(self.ff(self.norm3(b)))
        a = self.norm1(x + self.so_far(x))
        b = self.norm2(a + cross(a))
        return self.norm3(b + self.drop(self.ff(b)))
