# %% nothing-kept
"""Every step sees only its own token: the new key and value never get into the cache that you return."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% only-the-last-token-kept
"""Your cache holds one token: the new key and value replace the old ones instead of being joined to them."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    new_k, new_v = k, v
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = new_k, new_v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% itself-left-out
"""The new token does not attend to itself: you use the keys that were in the cache before this step. In the
causal pass a query sees its own position too."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is None:
        cache.k, cache.v = k, v
        out, _ = attention(q, k, v)
    else:
        out, _ = attention(q, cache.k, cache.v)
        cache.k, cache.v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    return mha.o_proj(merge_heads(out)), cache


# %% joined-along-heads
"""From the second step on the shapes do not fit: you join the new keys along the head axis. Of [B, H, n, Dh] it
is the third axis that grows."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 1), torch.cat([cache.v, v], 1)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% new-token-in-front
"""Your new token goes in front of the old ones, in the keys but not in the values: from the second step on each
weight meets another token's value."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([k, cache.k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% values-from-keys
"""Your cache keeps the keys twice: what stands for the values was made with `k_proj`."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.k_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% o-proj-forgotten
"""You return the merged heads. The layer ends with `o_proj`, and so does a step of it."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return merge_heads(out), cache


# %% heads-not-split
"""Your step attends with one head of width d_model. The layer splits its projections into `n_heads` heads, and
a step has to do the same."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = mha.q_proj(x_t)[:, None]  # [B, H, 1, Dh]
    k = mha.k_proj(x_t)[:, None]
    v = mha.v_proj(x_t)[:, None]
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% causal-top-left
"""From the second step on the newest token sees only the first one: a triangle made for one query and n keys,
aligned at the top left, leaves a single key open. Everything in the cache is past: what is there to block?"""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # [B, H, 1, n]
    later = torch.ones(1, k.shape[2], dtype=torch.bool, device=q.device).triu(1)
    out = softargmax(scores.masked_fill(later, -math.inf)) @ v
    return mha.o_proj(merge_heads(out)), cache


# %% scaled-by-length
"""Your scores are divided by the root of the number of cached tokens: the first steps are off one way, the
later ones the other. The scale is the root of the width of a head."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v, beta=1 / math.sqrt(k.shape[2]))
    return mha.o_proj(merge_heads(out)), cache


# %% cache-shared-by-all
"""A second `KVCache()` already holds the tokens of the first: lists written in the class body belong to the
class, not to the object. Make them in `__init__`."""
class KVCache:
    keys = []
    values = []


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    cache.keys.append(split_heads(mha.k_proj(x_t), mha.n_heads))
    cache.values.append(split_heads(mha.v_proj(x_t), mha.n_heads))
    out, _ = attention(q, torch.cat(cache.keys, 2), torch.cat(cache.values, 2))
    return mha.o_proj(merge_heads(out)), cache


# %% token-axis-dropped
"""Your output has shape [B, D]: the token axis of length 1 is lost on the way. Input and output of a step are
[B, 1, D]."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)).squeeze(1), cache


# %% full-pass-every-step
"""Your numbers are right, but each step runs the whole causal pass over all tokens so far: that is the work
which the cache should save. Keep keys and values, not tokens."""
class KVCache:
    def __init__(self):
        self.x = None  # [B, n, D]


def cached_step(mha, x_t, cache):
    cache.x = x_t if cache.x is None else torch.cat([cache.x, x_t], 1)
    out, _ = mha(cache.x, cache.x, cache.x, causal=True)
    return out[:, -1:], cache


# %% projects-everything-again
"""Each of your steps projects old tokens again, or what was made of them, to get their keys and values. These have not
changed since they were made: keep them projected, and project the new token alone."""
class KVCache:
    def __init__(self):
        self.x = None  # [B, n, D]


def cached_step(mha, x_t, cache):
    cache.x = x_t if cache.x is None else torch.cat([cache.x, x_t], 1)
    out, _ = mha(x_t, cache.x, cache.x)
    return out, cache


# %% all-queries-again
"""Your numbers are right, but each step attends with all queries so far, so its work grows with the square of
the length. Earlier outputs do not change: only the newest query is needed."""
class KVCache:
    def __init__(self):
        self.q = self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        q, k, v = torch.cat([cache.q, q], 2), torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.q, cache.k, cache.v = q, k, v
    out, _ = attention(q, k, v, causal=True)
    return mha.o_proj(merge_heads(out[:, :, -1:])), cache


# %% new-key-against-old-queries
"""You let the new key meet the old queries. It is the other way round: earlier tokens may not look at the new
one, and the new query looks at every key."""
class KVCache:
    def __init__(self):
        self.q = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)
    k = split_heads(mha.k_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.q is not None:
        q, v = torch.cat([cache.q, q], 2), torch.cat([cache.v, v], 2)
    cache.q, cache.v = q, v
    out, _ = attention(k, q, v)
    return mha.o_proj(merge_heads(out)), cache


# %% scaled-by-model-width
"""Your scores are divided by the root of d_model. As in the full pass, a head's dot product runs over Dh numbers."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v, beta=1 / math.sqrt(x_t.shape[-1]))
    return mha.o_proj(merge_heads(out)), cache


# %% biases-forgotten
"""You multiply by the weights of the projections and leave their biases out: call the layers themselves."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q, k, v = (split_heads(x_t @ p.weight.T, mha.n_heads) for p in (mha.q_proj, mha.k_proj, mha.v_proj))
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)
    return mha.o_proj(merge_heads(out)), cache


# %% old-tokens-projected-by-hand
"""Your cache holds the tokens, and each step makes all keys and values anew, with products that no counter of matrix
products sees. Project the new token alone, and keep what comes out."""
class KVCache:
    def __init__(self):
        self.x = None  # [B, n, D]


def _by_hand(layer, x):
    out = (x[..., None, :] * layer.weight).sum(-1)
    return out if layer.bias is None else out + layer.bias


def cached_step(mha, x_t, cache):
    cache.x = x_t if cache.x is None else torch.cat([cache.x, x_t], 1)
    q = split_heads(mha.q_proj(x_t), mha.n_heads)
    k, v = (split_heads(_by_hand(p, cache.x), mha.n_heads) for p in (mha.k_proj, mha.v_proj))
    return mha.o_proj(merge_heads(attention(q, k, v)[0])), cache


# %% softmax-overflows
"""With large scores your outputs are NaN: exp overflows. Subtract the largest score first, or use a softmax that
does."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    return mha.o_proj(merge_heads(e / e.sum(-1, keepdim=True) @ v)), cache


# %% equal-tokens-kept-once
"""A token that your cache knows already is not added again. It counts each time that it comes: every step adds one key
and one value."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is None:
        cache.k, cache.v = k, v
    elif not bool((cache.k == k).all(-1).any(2).all()):
        cache.k, cache.v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    return mha.o_proj(merge_heads(attention(q, cache.k, cache.v)[0])), cache


# %% dropout-in-training
"""Your step drops weights when the module is in training mode. In a step dropout is off, whatever mode the module is
in."""
class KVCache:
    def __init__(self):
        self.k = self.v = None  # [B, H, n, Dh]


def cached_step(mha, x_t, cache):
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)
    cache.k, cache.v = k, v
    weights = F.dropout(attention(q, k, v)[1], 0.1, mha.training)
    return mha.o_proj(merge_heads(weights @ v)), cache
