# %% torch-attention-and-fused-cache
"""An attention of its own with F.scaled_dot_product_attention; keys and values of all blocks in one tensor each, in a
class; a second name for the tied weight; positions by counting real tokens."""
class _Memory:
    def __init__(self, n):
        self.kv = [None] * n
        self.length = 0


class _Look(nn.Module):
    def __init__(self, d, h, p):
        super().__init__()
        self.h, self.p = h, p
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(d, d))

    def forward(self, x, blocked, memory, i):
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.h, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        if memory is not None:
            new = torch.stack([k, v])
            memory.kv[i] = new if memory.kv[i] is None else torch.cat([memory.kv[i], new], 3)
            k, v = memory.kv[i].unbind(0)
        p = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~blocked[:, None], dropout_p=p)
        return self.o_proj(torch.nan_to_num(y).transpose(1, 2).reshape(B, T, D))


class _MLP(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(d, f), nn.GELU(approximate="tanh"), nn.Linear(f, d)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class _Layer(nn.Module):
    def __init__(self, d, h, f, p):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.ff = nn.LayerNorm(d), _Look(d, h, p), nn.LayerNorm(d), _MLP(d, f)
        self.drop = nn.Dropout(p)

    def forward(self, x, *rest):
        x = x + self.drop(self.attn(self.norm1(x), *rest))
        return x + self.drop(self.ff(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0):
        super().__init__()
        self.token_embed, self.position_embed = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([_Layer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.final_norm, self.drop, self.max_len = nn.LayerNorm(d_model), nn.Dropout(dropout), max_len
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.apply(self._start)
        self.head.weight = self.token_embed.weight

    @staticmethod
    def _start(part):
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, 0.0, 0.02)
            if getattr(part, "bias", None) is not None:
                nn.init.zeros_(part.bias)

    def new_cache(self):
        return _Memory(len(self.blocks))

    def forward(self, ids, key_padding_mask=None, cache=None):
        B, T = ids.shape
        past = cache.length if cache is not None else 0
        S = past + T
        if S > self.max_len:
            raise ValueError("too long")
        pad = key_padding_mask if key_padding_mask is not None else torch.zeros(B, S, dtype=torch.bool, device=ids.device)
        pos = ((~pad).long().cumsum(1) - 1).clamp(min=0)[:, past:]
        i, j = torch.arange(past, S, device=ids.device)[:, None], torch.arange(S, device=ids.device)
        blocked = (j > i)[None] | pad[:, None]
        x = self.drop(self.token_embed(ids) + self.position_embed(pos))
        for n, block in enumerate(self.blocks):
            x = block(x, blocked, cache, n)
        if cache is not None:
            cache.length = S
        return self.head(self.final_norm(x))


# %% given-attention-and-hidden-states
"""The given MultiHeadAttention does the whole pass; with a cache its projections are used one by one, keys and values in
a dict by number; padding tokens look at themselves, so that no row is empty."""
class _FF(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d, f), nn.Linear(f, d)

    def forward(self, x):
        h = self.fc1(x)
        return self.fc2(0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3))))


class _B(nn.Module):
    def __init__(self, d, h, f, p):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn, self.ff, self.p = MultiHeadAttention(d, h, p), _FF(d, f), p


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0):
        super().__init__()
        self.max_len, self.p = max_len, dropout
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(_B(d_model, n_heads, d_ff, dropout) for _ in range(n_layers))
        self.final_norm = nn.LayerNorm(d_model)
        with torch.no_grad():
            for part in self.modules():
                if isinstance(part, nn.Linear):
                    part.weight.normal_(0, 0.02)
                    part.bias.zero_()
                elif isinstance(part, nn.Embedding):
                    part.weight.normal_(0, 0.02)

    def new_cache(self):
        return {"n": 0}

    def forward(self, ids, key_padding_mask=None, cache=None):
        past = 0 if cache is None else cache["n"]
        if past + ids.size(1) > self.max_len:
            raise ValueError(f"max_len is {self.max_len}")
        place = torch.arange(past, past + ids.size(1), device=ids.device).expand(ids.shape)
        if key_padding_mask is not None:
            place = torch.relu(place - key_padding_mask.sum(1)[:, None])
        x = F.dropout(self.token_embed(ids) + self.position_embed(place), self.p, self.training)
        for i, b in enumerate(self.blocks):
            h = b.norm1(x)
            if cache is None:
                y = b.attn(h, h, h, key_padding_mask, causal=True)[0]
            else:
                m = b.attn
                k, v = split_heads(m.k_proj(h), m.n_heads), split_heads(m.v_proj(h), m.n_heads)
                if i in cache:
                    k, v = torch.cat((cache[i][0], k), 2), torch.cat((cache[i][1], v), 2)
                cache[i] = k, v
                out, w = attention(split_heads(m.q_proj(h), m.n_heads), k, v, key_padding_mask, causal=True)
                if self.training and self.p:
                    out = F.dropout(w, self.p) @ v
                y = m.o_proj(merge_heads(out))
            x = x + F.dropout(y, self.p, self.training)
            x = x + F.dropout(b.ff(b.norm2(x)), self.p, self.training)
        if cache is not None:
            cache["n"] += ids.size(1)
        return F.linear(self.final_norm(x), self.token_embed.weight)


# %% room-reserved
"""Einsum throughout; the cache reserves room for max_len columns and writes into it; blocked scores get a large negative
number instead of -inf."""
class _Blk(nn.Module):
    def __init__(self, d, h, f, p):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(d), MultiHeadAttention(d, h, p), nn.LayerNorm(d)
        self.ff = nn.Sequential()
        self.ff.fc1, self.ff.fc2 = nn.Linear(d, f), nn.Linear(f, d)


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0):
        super().__init__()
        self.sizes = (n_layers, n_heads, d_model // n_heads)
        self.max_len = max_len
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([_Blk(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.final_norm = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        for p in (p for b in self.modules() if isinstance(b, (nn.Linear, nn.Embedding)) for p in b.parameters()):
            nn.init.normal_(p, std=0.02) if p.ndim > 1 else nn.init.zeros_(p)

    def new_cache(self):
        return {"length": 0}

    def forward(self, ids, key_padding_mask=None, cache=None):
        (B, T), (L, H, Dh) = ids.shape, self.sizes
        t0 = cache["length"] if cache else 0
        S = t0 + T
        if S > self.max_len:
            raise ValueError("the text is too long")
        pos = torch.arange(t0, S, device=ids.device)[None].repeat(B, 1)
        hide = torch.arange(S, device=ids.device)[None, :] > torch.arange(t0, S, device=ids.device)[:, None]
        hide = hide[None].repeat(B, 1, 1)
        if key_padding_mask is not None:
            pos = (pos - key_padding_mask.long().sum(dim=1, keepdim=True)).clamp_min(0)
            hide = hide | key_padding_mask[:, None, :]
        x = self.drop(self.token_embed(ids) + self.position_embed(pos))
        if cache is not None and "kv" not in cache:
            cache["kv"] = x.new_zeros(L, 2, B, H, self.max_len, Dh)
        for i, b in enumerate(self.blocks):
            h = b.norm1(x)
            q, k, v = (rearranged(f(h), H) for f in (b.attn.q_proj, b.attn.k_proj, b.attn.v_proj))
            if cache is not None:
                cache["kv"][i, 0, :, :, t0:S] = k
                cache["kv"][i, 1, :, :, t0:S] = v
                k, v = cache["kv"][i, 0, :, :, :S], cache["kv"][i, 1, :, :, :S]
            s = torch.einsum("bhtd,bhsd->bhts", q, k) / Dh**0.5
            s = s.masked_fill(hide[:, None], -1e30)
            a = self.drop(s.softmax(-1))
            y = torch.einsum("bhts,bhsd->bthd", a, v).reshape(B, T, H * Dh)
            x = x + self.drop(b.attn.o_proj(y))
            x = x + self.drop(b.ff.fc2(F.gelu(b.ff.fc1(b.norm2(x)), approximate="tanh")))
        if cache is not None:
            cache["length"] = S
        return torch.einsum("btd,vd->btv", self.final_norm(x), self.token_embed.weight)


def rearranged(x, H):
    B, T, D = x.shape
    return x.reshape(B, T, H, D // H).permute(0, 2, 1, 3)
