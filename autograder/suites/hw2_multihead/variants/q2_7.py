# %% lists-of-tokens
"""Keys and values in lists, one tensor per token, stacked when they are needed."""
class KVCache:
    def __init__(self):
        self.keys, self.values = [], []

    def __len__(self):
        return len(self.keys)


def cached_step(mha, x_t, cache):
    B, _, D = x_t.shape
    H = mha.n_heads
    cache.keys.append(mha.k_proj(x_t).view(B, H, D // H))
    cache.values.append(mha.v_proj(x_t).view(B, H, D // H))
    q = mha.q_proj(x_t).view(B, H, D // H)
    K, V = torch.stack(cache.keys, 2), torch.stack(cache.values, 2)  # [B, H, n, Dh]
    scores = torch.einsum("bhd,bhnd->bhn", q, K) / math.sqrt(D // H)
    out = torch.einsum("bhn,bhnd->bhd", torch.softmax(scores, -1), V)
    return mha.o_proj(out.reshape(B, 1, D)), cache


# %% named-tuple
"""An immutable cache: each step gives back a new one, and the old one stays as it was."""
from typing import NamedTuple


class KVCache(NamedTuple):
    k: Tensor | None = None
    v: Tensor | None = None


def cached_step(mha, x_t, cache):
    q, k, v = (split_heads(proj(x_t), mha.n_heads) for proj in (mha.q_proj, mha.k_proj, mha.v_proj))
    if cache.k is not None:
        k, v = torch.cat((cache.k, k), dim=-2), torch.cat((cache.v, v), dim=-2)
    out, _ = attention(q, k, v, causal=True)  # one query, aligned at the bottom right: it sees every key
    return mha.o_proj(merge_heads(out)), KVCache(k, v)


# %% fused-attention
"""F.scaled_dot_product_attention, which this question allows; a cache that grows through a method."""
class KVCache:
    def __init__(self):
        self.store = {}

    def append(self, **new):
        for name, x in new.items():
            old = self.store.get(name)
            self.store[name] = x if old is None else torch.cat([old, x], dim=2)
        return [self.store[name] for name in new]


def cached_step(mha, x_t, cache):
    def split(x):
        return x.unflatten(-1, (mha.n_heads, -1)).transpose(1, 2)

    k, v = cache.append(k=split(mha.k_proj(x_t)), v=split(mha.v_proj(x_t)))
    out = F.scaled_dot_product_attention(split(mha.q_proj(x_t)), k, v)
    return mha.o_proj(out.transpose(1, 2).flatten(2)), cache


# %% buffer-that-doubles
"""A buffer whose capacity doubles when it is full; the part in use is a slice of it."""
class KVCache:
    def __init__(self):
        self.length = 0
        self.kv = None  # [2, B, H, capacity, Dh]

    def add(self, kv):
        if self.kv is None:
            self.kv = kv
        else:
            if self.length == self.kv.shape[3]:
                self.kv = torch.cat([self.kv, torch.zeros_like(self.kv)], 3)
            place = torch.arange(self.length, self.length + 1, device=kv.device)
            self.kv = self.kv.index_copy(3, place, kv)
        self.length += 1
        return self.kv[:, :, :, : self.length].unbind(0)


def cached_step(mha, x_t, cache):
    heads = torch.stack([p(x_t).unflatten(-1, (mha.n_heads, -1)) for p in (mha.q_proj, mha.k_proj, mha.v_proj)])
    heads = heads.transpose(2, 3)  # [3, B, H, 1, Dh]
    k, v = cache.add(heads[1:])
    weights = softargmax(heads[0] @ k.transpose(-1, -2), beta=k.shape[-1] ** -0.5)
    return mha.o_proj((weights @ v).permute(0, 2, 1, 3).reshape(x_t.shape)), cache


# %% unsplit-cache
"""The cache holds whole projections [B, n, D]; a loop over heads takes slices of columns; a module as cache."""
class KVCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.keys = None
        self.values = None


def cached_step(mha, x_t, cache):
    k, v = mha.k_proj(x_t), mha.v_proj(x_t)
    cache.keys = k if cache.keys is None else torch.cat([cache.keys, k], 1)
    cache.values = v if cache.values is None else torch.cat([cache.values, v], 1)
    q, width = mha.q_proj(x_t), x_t.shape[-1] // mha.n_heads
    heads = []
    for h in range(mha.n_heads):
        columns = slice(h * width, (h + 1) * width)
        scores = (q[..., columns] * cache.keys[..., columns]).sum(-1) * width**-0.5  # [B, n]
        weights = torch.softmax(scores, dim=1)
        heads.append((weights[..., None] * cache.values[..., columns]).sum(1, keepdim=True))
    return mha.o_proj(torch.cat(heads, -1)), cache


# %% running-softmax
"""One pass over the cached tokens with a running maximum, as fast kernels do it."""
class KVCache:
    def __init__(self, past=()):
        self.past = tuple(past)


def cached_step(mha, x_t, cache):
    q, k, v = (torch.stack(p(x_t).chunk(mha.n_heads, -1), 1) for p in (mha.q_proj, mha.k_proj, mha.v_proj))
    cache = KVCache((*cache.past, (k, v)))
    q = q / math.sqrt(q.shape[-1])  # [B, H, 1, Dh]
    top, total, acc = (q * k).sum(-1, keepdim=True).detach(), 0.0, 0.0
    for key, value in cache.past:
        z = (q * key).sum(-1, keepdim=True)
        new = torch.maximum(top, z.detach())
        fade, e = torch.exp(top - new), torch.exp(z - new)
        total, acc, top = total * fade + e, acc * fade + e * value, new
    return mha.o_proj(merge_heads(acc / total)), cache


# %% head-by-head-and-key-by-key
"""Loops over the heads and over the keys, with tensors of one token only."""


class KVCache:
    def __init__(self):
        self.keys, self.values = [], []


def cached_step(mha, x_t, cache):
    width = x_t.shape[-1] // mha.n_heads
    q, k, v = mha.q_proj(x_t)[:, 0], mha.k_proj(x_t)[:, 0], mha.v_proj(x_t)[:, 0]  # [B, D]
    cache.keys.append(k)
    cache.values.append(v)
    heads = []
    for h in range(mha.n_heads):
        part = slice(h * width, (h + 1) * width)
        scores = torch.stack([(q[:, part] * key[:, part]).sum(-1) for key in cache.keys], dim=1) / width**0.5  # [B, t]
        a = torch.softmax(scores, dim=1)
        heads.append(sum(a[:, i : i + 1] * value[:, part] for i, value in enumerate(cache.values)))
    return mha.o_proj(torch.cat(heads, -1))[:, None], cache
