# %% normaliser-forgotten
"""Constant values come back changed: your weights do not sum to 1. The sum of g(q) . g(k) over the keys is
missing below the fraction, and it too needs no [T, S] matrix."""
replace("q @ (k.mT @ v) / (q @ k.sum(1)[..., None])", "q @ (k.mT @ v)")
replace("(q[:, :, None] @ states).squeeze(2) / total.masked_fill(total == 0, 1.0)",
        "(q[:, :, None] @ states).squeeze(2)")

# %% divided-by-length
"""You divide by the number of keys. The weights have to sum to 1, and their sum is g(q) . (sum of g(k)),
another number for each query."""
replace("/ (q @ k.sum(1)[..., None])", "/ S")
replace("total.masked_fill(total == 0, 1.0)", "(torch.arange(T, device=q.device)[:, None] + S - T + 1).clamp(min=1)")

# %% feature-map-on-values
"""You apply the feature map to the values as well. It replaces the exponential, which acts on queries and keys;
the values are what is averaged."""
replace("q, k = feature_map(q), feature_map(k)", "q, k, v = feature_map(q), feature_map(k), feature_map(v)")

# %% queries-not-mapped
"""Only your keys pass through the feature map. A weight is g(q) . g(k): the query needs it too."""
replace("q, k = feature_map(q), feature_map(k)", "k = feature_map(k)")

# %% scaled price=0.25
"""You divide the queries by the root of their width first. There is no scale in this attention: the weight is
g(q) . g(k) with the vectors as they are."""
replace("feature_map(q)", "feature_map(q / math.sqrt(q.shape[-1]))")

# %% normalised-over-queries
"""You divide by a sum over the queries. Each query's weights sum to 1 over the keys: it is the mapped keys that
are added up."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    below = (fk @ fq.sum(-2).unsqueeze(-1)) if not causal else (fk * fq.cumsum(-2)).sum(-1, keepdim=True)
    v = v / below
    if not causal:
        return fq @ (fk.mT @ v)
    state = (fk[..., :, None] * v[..., None, :]).cumsum(-3)
    return torch.einsum("...tf,...tfv->...tv", fq, state)

# %% softmax-attention price=0.6
"""You return softmax attention on the mapped vectors. Here the product g(q) . g(k) is the weight itself, before
it is normalised: no exponential comes on top."""
def linear_attention(q, k, v, feature_map, causal=False):
    return attention(feature_map(q), feature_map(k), v, causal=causal, beta=1.0)[0]

# %% causal-ignored
"""`causal=True` changes nothing in your result: the sums run over all keys, the future included."""
replace("if not causal:", "if True:")

# %% causal-strict price=0.3
"""Your causal sums end one key too early: a query also sees the key at its own position."""
replace("cumsum(1), (0, 0, 0, 0, nothing, 0))[:, -T:]", "cumsum(1), (0, 0, 0, 0, nothing + 1, 0))[:, -T - 1 : -1]")
replace("k.cumsum(1), (0, 0, nothing, 0))[:, -T:]", "k.cumsum(1), (0, 0, nothing + 1, 0))[:, -T - 1 : -1]")

# %% causal-top-left price=0.2
"""With fewer queries than keys your sums stop too early: the last query must see every key, so query i takes
the first i + (S - T) + 1 of them."""
replace("nothing = max(T - S, 0)", "seen = torch.arange(T, device=q.device).clamp(max=S - 1)")
replace("F.pad((k[..., None] * v[..., None, :]).cumsum(1), (0, 0, 0, 0, nothing, 0))[:, -T:]",
        "(k[..., None] * v[..., None, :]).cumsum(1)[:, seen]")
replace("F.pad(k.cumsum(1), (0, 0, nothing, 0))[:, -T:]", "k.cumsum(1)[:, seen]")

# %% normaliser-not-causal price=0.3
"""Your sum of values is causal and the normaliser is not: it adds up all keys, the future included. Both sums
stop at the same key."""
replace("total = (q * norms).sum(-1, keepdim=True)", "total = q @ k.sum(1)[..., None]")

# %% builds-the-matrix price=0.5
"""Your numbers are right, but you form the [T, S] matrix of all products, so the cost is quadratic as before.
The product of three matrices can be bracketed another way."""
def linear_attention(q, k, v, feature_map, causal=False):
    weights = feature_map(q) @ feature_map(k).mT  # [..., T, S]
    if causal:
        weights = weights.tril(k.shape[-2] - q.shape[-2])
    total = weights.sum(-1, keepdim=True)
    return weights @ v / total.masked_fill(total == 0, 1.0)

# %% causal-builds-the-matrix price=0.3
"""Without the mask your cost is linear. With `causal=True` you fall back on the [T, S] matrix: a running sum
over the keys does it without."""
replace("nothing = max(T - S, 0)", """weights = (q @ k.mT).tril(S - T)
    total = weights.sum(-1, keepdim=True)
    return weights @ v / total.masked_fill(total == 0, 1.0)""")

# %% prefix-summed-anew price=0.25
"""Your numbers are right, but with `causal=True` you sum over all keys before each query again, which is
quadratic work. The sum for one query is the last one plus a single term."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    if not causal:
        return fq @ (fk.mT @ v) / (fq @ fk.sum(-2).unsqueeze(-1))
    T, S = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(T):
        n = max(0, i + S - T + 1)
        fqi = fq[..., i : i + 1, :]
        below = fqi @ fk[..., :n, :].sum(-2).unsqueeze(-1)
        rows.append(fqi @ (fk[..., :n, :].mT @ v[..., :n, :]) / below.masked_fill(below == 0, 1.0))
    return torch.cat(rows, -2)

# %% dead-rows-nan price=0.15
"""With more queries than keys the first causal queries see nothing, and you give NaN there: 0 / 0. The card
asks for zeros."""
replace("total.masked_fill(total == 0, 1.0)", "total")

# %% ordinary-attention price=0.8
"""This is the attention of homework 1, with its exponential and its scale; the feature map is never asked. Here the
weight of a key is g(q) . g(k), divided by the sum of these."""
def linear_attention(q, k, v, feature_map, causal=False):
    return attention(q, k, v, causal=causal)[0]

# %% no-gradient price=0.3
"""Your numbers are right, but no gradient reaches the inputs: they are detached, or the work is done outside torch.
This is a part of a model, and has to learn."""
replace("q, k = feature_map(q), feature_map(k)",
        "q, k, v = feature_map(q.detach()), feature_map(k.detach()), v.detach()")

# %% queries-detached price=0.2
"""No gradient reaches q: its features are detached, so the queries would never learn."""
replace("feature_map(q)", "feature_map(q.detach())")

# %% keys-detached price=0.2
"""No gradient reaches k: its features are computed without one, so the keys would never learn."""
replace("feature_map(k)", "feature_map(k).detach()")

# %% running-sum-in-place price=0.2
"""Your numbers are right, and `backward` stops with an error: `+=` overwrites the running sums that the backward pass
still needs. Write state = state + ..., which makes a new tensor."""
def linear_attention(q, k, v, feature_map, causal=False):
    fq, fk = feature_map(q), feature_map(k)
    if not causal:
        return fq @ (fk.mT @ v) / (fq @ fk.sum(-2).unsqueeze(-1))
    T, S = q.shape[-2], k.shape[-2]
    state, total = fk.new_zeros(len(fk), fk.shape[-1], v.shape[-1]), torch.zeros_like(fk[:, 0])
    rows, added = [], 0
    for i in range(T):
        while added < i + S - T + 1:
            state += fk[:, added, :, None] * v[:, added, None, :]
            total += fk[:, added]
            added += 1
        top = (fq[:, i, None] @ state)[:, 0]
        rows.append(top / (fq[:, i] * total).sum(-1, keepdim=True) if added else top)
    return torch.stack(rows, 1)

# %% dead-rows-hidden-nan price=0.1
"""With more queries than keys your output is right and the gradient is NaN: 0 / 0 is computed, then overwritten, and
comes back in the backward pass. Divide by 1 where the sum is 0."""
replace("(q[:, :, None] @ states).squeeze(2) / total.masked_fill(total == 0, 1.0)",
        "torch.nan_to_num((q[:, :, None] @ states).squeeze(2) / total)")

# %% divisor-raised price=0.15
"""You add a small number to the divisor, or keep it from getting small. Weights are relative: where all features are
small, that number decides."""
replace("q @ k.sum(1)[..., None]", "q @ k.sum(1)[..., None] + 1e-6")
replace("total.masked_fill(total == 0, 1.0)", "(total + 1e-6)")

# %% one-divisor-for-all-queries
"""You divide all queries of a row by the same number, a mean over the queries. Each query has a sum of its own:
g(q) . (sum of g(k))."""
replace("(q @ k.sum(1)[..., None])", "(q @ k.sum(1)[..., None]).mean(-2, keepdim=True)")

# %% negative-index-wraps price=0.1
"""With more queries than keys your first queries read the sums at a negative index, which counts from the end: they
see keys from the future. Queries that see no key give 0."""
replace("nothing = max(T - S, 0)", "last = torch.arange(T, device=q.device) + S - T")
replace("F.pad((k[..., None] * v[..., None, :]).cumsum(1), (0, 0, 0, 0, nothing, 0))[:, -T:]",
        "(k[..., None] * v[..., None, :]).cumsum(1)[:, last]")
replace("F.pad(k.cumsum(1), (0, 0, nothing, 0))[:, -T:]", "k.cumsum(1)[:, last]")

# %% state-summed-over-the-batch
"""Your examples meet: the sums over the keys run over the batch as well. Each example has a state of its own."""
replace("return q @ (k.mT @ v) / (q @ k.sum(1)[..., None])",
        "return q @ (k.mT @ v).sum(0, keepdim=True) / (q @ k.sum((0, 1))[:, None])")

# %% state-of-the-batch-normaliser-of-the-example
"""Your sum of values runs over the batch as well as over the keys. Each example has a state of its own."""
replace("return q @ (k.mT @ v) /", "return q @ (k.mT @ v).sum(0, keepdim=True) /")

# %% keys-scaled price=0.25
"""You divide the keys by the root of their width first. There is no scale in this attention: the weight is
phi(q) . phi(k) with the vectors as they are."""
replace("feature_map(k)", "feature_map(k / math.sqrt(k.shape[-1]))")

# %% normaliser-detached price=0.2
"""The output is right, and its gradient is not: the sum below the fraction is detached. It depends on queries and keys
as much as the one above."""
replace("/ (q @ k.sum(1)[..., None])", "/ (q @ k.sum(1)[..., None]).detach()")

# %% float32-inside price=0.15
"""Your results have the digits of float32, whatever dtype comes in: somewhere features or sums are made in float32."""
replace("q, k = feature_map(q), feature_map(k)", "q, k = feature_map(q).float().to(q.dtype), feature_map(k).float().to(k.dtype)")
