# %% nothing-kept price=0.6
"""Every step sees only its own token: the new key and value never get into the cache that you return."""
replace("cache.k, cache.v = k, v", "")

# %% only-the-last-token-kept
"""Your cache holds one token: the new key and value replace the old ones instead of being joined to them."""
replace("cache.k, cache.v = k, v", "cache.k, cache.v = k[:, :, -1:], v[:, :, -1:]")

# %% itself-left-out
"""The new token does not attend to itself: you use the keys that were in the cache before this step. In the
causal pass a query sees its own position too."""
replace("attention(q, k, v)", "attention(q, k[:, :, : max(k.shape[2] - 1, 1)], v[:, :, : max(k.shape[2] - 1, 1)])")

# %% joined-along-heads
"""From the second step on the shapes do not fit: you join the new keys along the head axis. Of [B, H, n, Dh] it
is the third axis that grows."""
replace("torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)",
        "torch.cat([cache.k, k], dim=1), torch.cat([cache.v, v], dim=1)")

# %% new-token-in-front
"""Your new token goes in front of the old ones, in the keys but not in the values: from the second step on each
weight meets another token's value."""
replace("torch.cat([cache.k, k], dim=2)", "torch.cat([k, cache.k], dim=2)")

# %% values-from-keys
"""Your cache keeps the keys twice: what stands for the values was made with `k_proj`."""
replace("""self.k: Tensor | None = None  # [B, H, t, Dh]
        self.v: Tensor | None = None  # [B, H, t, Dh]""",
        "self.k = self.v = None  # [B, H, n, Dh]")
replace("mha.v_proj(x_t)", "mha.k_proj(x_t)")
replace("k, v = torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)",
        "k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)")

# %% o-proj-forgotten price=0.25
"""You return the merged heads. The layer ends with `o_proj`, and so does a step of it."""
replace("""self.k: Tensor | None = None  # [B, H, t, Dh]
        self.v: Tensor | None = None  # [B, H, t, Dh]""",
        "self.k = self.v = None  # [B, H, n, Dh]")
replace("k, v = torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)",
        "k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)")
replace("mha.o_proj(merge_heads(out))", "merge_heads(out)")

# %% heads-not-split
"""Your step attends with one head of width d_model. The layer splits its projections into `n_heads` heads, and
a step has to do the same."""
replace("split_heads(mha.q_proj(x_t), mha.n_heads)", "mha.q_proj(x_t)[:, None]")
replace("split_heads(mha.k_proj(x_t), mha.n_heads)", "mha.k_proj(x_t)[:, None]")
replace("split_heads(mha.v_proj(x_t), mha.n_heads)", "mha.v_proj(x_t)[:, None]")

# %% causal-top-left
"""From the second step on the newest token sees only the first one: a triangle made for one query and n keys,
aligned at the top left, leaves a single key open. Everything in the cache is past: what is there to block?"""
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k[:, :, :1], v[:, :, :1])")

# %% scaled-by-length price=0.25
"""Your scores are divided by the root of the number of cached tokens: the first steps are off one way, the
later ones the other. The scale is the root of the width of a head."""
replace("attention(q, k, v)", "attention(q, k, v, beta=1 / math.sqrt(k.shape[2]))")

# %% cache-shared-by-all price=0.25
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

# %% token-axis-dropped price=0.2
"""Your output has shape [B, D]: the token axis of length 1 is lost on the way. Input and output of a step are
[B, 1, D]."""
replace("""self.k: Tensor | None = None  # [B, H, t, Dh]
        self.v: Tensor | None = None  # [B, H, t, Dh]""",
        "self.k = self.v = None  # [B, H, n, Dh]")
replace("k, v = torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)",
        "k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)")
replace("mha.o_proj(merge_heads(out))", "mha.o_proj(merge_heads(out)).squeeze(1)")

# %% full-pass-every-step price=0.6
"""Your numbers are right, but each step runs the whole causal pass over all tokens so far: that is the work
which the cache should save. Keep keys and values, not tokens."""
replace("self.k: Tensor | None = None", "self.x: Tensor | None = None")
replace("q = split_heads(mha.q_proj(x_t), mha.n_heads)",
        """cache.x = x_t if cache.x is None else torch.cat([cache.x, x_t], 1)
    return mha(cache.x, cache.x, cache.x, causal=True)[0][:, -1:], cache""")

# %% projects-everything-again
"""Each of your steps projects old tokens again, or what was made of them, to get their keys and values. These have not
changed since they were made: keep them projected, and project the new token alone."""
replace("self.k: Tensor | None = None", "self.x: Tensor | None = None")
replace("q = split_heads(mha.q_proj(x_t), mha.n_heads)",
        """cache.x = x_t if cache.x is None else torch.cat([cache.x, x_t], 1)
    return mha(x_t, cache.x, cache.x)[0], cache""")

# %% all-queries-again price=0.3
"""Your numbers are right, but each step attends with all queries so far, so its work grows with the square of
the length. Earlier outputs do not change: only the newest query is needed."""
replace("self.k: Tensor | None = None", "self.q = self.k = None")
replace("cache.k, cache.v = k, v", """q = q if cache.q is None else torch.cat([cache.q, q], dim=2)
    cache.q, cache.k, cache.v = q, k, v""")
replace("out, _ = attention(q, k, v)", "out = attention(q, k, v, causal=True)[0][:, :, -1:]")

# %% new-key-against-old-queries price=0.3
"""You let the new key meet the old queries. It is the other way round: earlier tokens may not look at the new
one, and the new query looks at every key."""
replace("q = split_heads(mha.q_proj(x_t), mha.n_heads)", "k = split_heads(mha.q_proj(x_t), mha.n_heads)")
replace("k = split_heads(mha.k_proj(x_t), mha.n_heads)", "q = split_heads(mha.k_proj(x_t), mha.n_heads)")

# %% scaled-by-model-width price=0.25
"""Your scores are divided by the root of d_model. As in the full pass, a head's dot product runs over Dh numbers."""
replace("""self.k: Tensor | None = None  # [B, H, t, Dh]
        self.v: Tensor | None = None  # [B, H, t, Dh]""",
        "self.k = self.v = None  # [B, H, n, Dh]")
replace("k, v = torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)",
        "k, v = torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2)")
replace("attention(q, k, v)", "attention(q, k, v, beta=1 / math.sqrt(x_t.shape[-1]))")

# %% biases-forgotten price=0.25
"""You multiply by the weights of the projections and leave their biases out: call the layers themselves."""
replace("mha.q_proj(x_t)", "x_t @ mha.q_proj.weight.T")
replace("mha.k_proj(x_t)", "x_t @ mha.k_proj.weight.T")
replace("mha.v_proj(x_t)", "x_t @ mha.v_proj.weight.T")

# %% old-tokens-projected-by-hand price=0.3
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

# %% softmax-overflows price=0.15
"""With large scores your outputs are NaN: exp overflows. Subtract the largest score first, or use a softmax that
does."""
replace("out, _ = attention(q, k, v)", """e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    out = e / e.sum(-1, keepdim=True) @ v""")

# %% equal-tokens-kept-once price=0.2
"""A token that your cache knows already is not added again. It counts each time that it comes: every step adds one key
and one value."""
replace("if cache.k is not None:", """if cache.k is not None and (cache.k == k).all(-1).any(2).all():
        k, v = cache.k, cache.v
    elif cache.k is not None:""")

# %% dropout-in-training price=0.15
"""Your step drops weights when the module is in training mode. In a step dropout is off, whatever mode the module is
in."""
replace("out, _ = attention(q, k, v)", "out = F.dropout(attention(q, k, v)[1], 0.1, mha.training) @ v")

# %% empty-on-the-cpu price=0.1
"""Your empty cache holds tensors that are on the CPU, whatever device the layer is on: start with nothing, and let the
first keys and values be the cache."""
replace("""self.k: Tensor | None = None  # [B, H, t, Dh]
        self.v: Tensor | None = None  # [B, H, t, Dh]""",
        "self.k, self.v = torch.empty(0), torch.empty(0)")
replace("if cache.k is not None:", "if True:")
replace("torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)",
        "torch.cat([cache.k.to(k.dtype), k], dim=2), torch.cat([cache.v.to(v.dtype), v], dim=2)")

# %% window-of-old-keys price=0.25
"""Your cache forgets: from some length on the oldest keys and values are dropped. A causal pass sees everything that came
before, so nothing may be thrown away."""
replace("cache.k, cache.v = k, v", "k, v = k[:, :, -8:], v[:, :, -8:]\n    cache.k, cache.v = k, v")

# %% first-rows-keys
"""Every example attends to the first example's keys: the batch axis is lost, in the cache or on the way."""
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k[:1].expand_as(k), v)")

# %% another-rows-values
"""Each example gets another example's values: keys, values and query of a row belong together."""
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k, v.roll(1, 0))")

# %% cache-not-returned price=0.15
"""You return the output alone. Asked is the pair (out, cache): the cache goes into the next step."""
replace("return mha.o_proj(merge_heads(out)), cache", "return mha.o_proj(merge_heads(out))")
