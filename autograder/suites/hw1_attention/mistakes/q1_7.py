# %% softmax-over-queries
"""Your weights sum to 1 over the queries, not over the keys: look at the axis of the softmax."""
replace("softargmax(scores)", "softargmax(scores, dim=-2)")

# %% unscaled
"""Without beta your scores are the plain dot products: the card's scale, one over the root of the width, is
missing and the weights are too sharp."""
replace("1 / math.sqrt(D) if beta is None", "1.0 if beta is None")

# %% scaled-by-d
"""You divide the dot products by the width itself: your weights are too flat. The standard deviation of the
dot product grows like the root of the width."""
replace("math.sqrt(D)", "D")

# %% scaled-by-model-width price=0.25
"""With heads you scale by the root of H * Dh, the width of the whole model. The dot product runs over one
head only, and so does the scale."""
replace("math.sqrt(D)", "math.sqrt(D * (q.shape[1] if q.dim() == 4 else 1))")

# %% beta-on-top-of-scale price=0.2
"""A given beta replaces the scale 1 / sqrt(Dh); you multiply the two."""
replace("1 / math.sqrt(D) if beta is None else beta", "(1.0 if beta is None else beta) / math.sqrt(D)")

# %% beta-zero-taken-for-none price=0.2
"""beta = 0 must give uniform weights, yet you fall back on the default: `or` and `if beta` treat 0 like None.
Ask for None itself."""
replace("1 / math.sqrt(D) if beta is None else beta", "beta or 1 / math.sqrt(D)")

# %% padding-polarity-inverted
"""You attend to the padding only: on the card True means padding, and you read True as "may be attended
to"."""
replace("key_padding_mask.reshape(-1, *heads, S)", "~key_padding_mask.reshape(-1, *heads, S)")

# %% padding-score-zero
"""You set the scores of padded keys to 0, but exp(0) = 1: a score of 0 still earns weight. What score gives
weight zero?"""
replace("key_padding_mask.reshape(-1, *heads, S), -math.inf", "key_padding_mask.reshape(-1, *heads, S), 0.0")

# %% padding-repeated-in-wrong-order
"""With heads, sentences get one another's padding: when you repeat the mask for the heads, the copies of one
sentence must stay together, because the batch axis comes before the head axis."""
replace("key_padding_mask.reshape(-1, *heads, S)",
        "key_padding_mask.repeat(q[0, ..., 0, 0].numel(), 1).view(*q.shape[:-2], 1, S)")

# %% masked-after-softmax
"""You zero the blocked weights after the softmax, so rows sum to less than 1 and blocked keys still count in
the denominator. Block the scores first."""
replace("if causal:", """free = softargmax(scores)
    if causal:""")
replace("softargmax(scores)  # [B, ..., T, S]", "free.masked_fill(scores == -math.inf, 0.0)")

# %% causal-flipped
"""Your causal mask is upside down: the first query sees everything, the last only itself. Query i may look
back to keys j <= i + (S - T)."""
replace("triu(S - T + 1)", "tril(S - T - 1)")

# %% causal-strict
"""Your causal mask also blocks the token itself: the diagonal belongs to the past and present a query may
see."""
replace("triu(S - T + 1)", "triu(S - T)")

# %% causal-top-left price=0.25
"""With fewer queries than keys your causal mask starts in the wrong corner: the last query must see every
key, so the triangle is aligned at the bottom right."""
replace("triu(S - T + 1)", "triu(1)")

# %% dead-rows-nan price=0.2
"""A query with every key blocked gives NaN: a softmax over nothing but -inf is 0 / 0. The card asks for zero
weights and a zero output there."""
replace("softargmax(scores)", "torch.softmax(scores, -1)")

# %% dead-rows-uniform price=0.2
"""A query with every key blocked gets uniform weights: when every score is the same large negative number,
the softmax cannot tell that nothing may be seen. Such rows are zero."""
replace("softargmax(scores)", "torch.softmax(scores.clamp(min=-1e9), -1)")

# %% dead-rows-unmasked price=0.2
"""You add a large negative number to blocked scores. When every key of a query is blocked this shifts them
all alike and the row comes out as if nothing were masked; such rows are zero."""
replace("scores = scores.masked_fill(later, -math.inf)", "scores = scores - 1e9 * later")
replace("scores.masked_fill(key_padding_mask.reshape(-1, *heads, S), -math.inf)",
        "scores - 1e9 * (key_padding_mask.reshape(-1, *heads, S) & (scores > -1e8))")
replace("softargmax(scores)", "torch.softmax(scores, -1)")

# %% dead-rows-nan-gradient price=0.2
"""Your output is right, but a fully blocked query sends NaN gradients back: -inf is added to the scores and
the NaN is only painted over after the softmax. Blocked scores must be replaced, or such rows kept out."""
replace("scores.masked_fill(later, -math.inf)", "scores + torch.where(later, -math.inf, 0.0)")
replace("scores.masked_fill(key_padding_mask.reshape(-1, *heads, S), -math.inf)",
        "scores + torch.where(key_padding_mask.reshape(-1, *heads, S), -math.inf, 0.0)")
replace("softargmax(scores)", "torch.softmax(scores, -1).nan_to_num()")

# %% softmax-in-float32 price=0.2
"""float64 inputs come back with float32 precision: the softmax is computed in float32 and cast back. Keep the
input's dtype all the way."""
replace("softargmax(scores)", "softargmax(scores.float()).to(q.dtype)")

# %% scores-for-weights price=0.25
"""The second thing you return is the scores. Return the weights, after the softmax: non-negative, rows
summing to 1."""
replace("if causal:", """free = scores
    if causal:""")
replace("return weights @ v, weights", "return weights @ v, free")

# %% query-scaled-in-place price=0.2
"""After your call the caller's queries are different: you scale them in place. Inputs are never changed; make
a new tensor."""
replace("(q * (1 / math.sqrt(D) if beta is None else beta))", "q.mul_(1 / math.sqrt(D) if beta is None else beta)")

# %% fused-kernel-for-the-output price=0.6
"""Your output comes from F.scaled_dot_product_attention, which this question rules out: it is what you are to build.
You have the weights already; multiply them by the values."""
replace("return weights @ v, weights", """blocked = scores == -math.inf
    out = F.scaled_dot_product_attention(q, k, v, ~blocked, scale=beta)
    return out.masked_fill(blocked.all(-1, keepdim=True), 0.0), weights""")

# %% masked-after-softmax-and-renormalised price=0.2
"""You zero the blocked weights after the softmax and divide by what is left. Where a blocked key has by far the largest
score nothing is left, and a small number in the denominator spoils the digits. Block the scores before the softmax."""
replace("if causal:", """free = softargmax(scores)
    if causal:""")
replace("softargmax(scores)  # [B, ..., T, S]", "free.masked_fill(scores == -math.inf, 0.0)")
replace("return weights @ v", """weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)
    return weights @ v""")

# %% causal-dropped-with-padding price=0.25
"""With a padding mask your attention forgets that it is causal: the second `if` replaces what the first has blocked. A
key is blocked if either mask blocks it."""
replace("if causal:", "if causal and key_padding_mask is None:")

# %% padding-by-lengths price=0.25
"""You count the padding and block that many keys at the end. Padding may stand at any place: block the keys that the
mask says."""
replace("key_padding_mask.reshape(-1, *heads, S)",
        "(torch.arange(S, device=q.device) >= (~key_padding_mask).sum(1, keepdim=True)).reshape(-1, *heads, S)")

# %% view-of-the-heads price=0.2
"""Your `view` fails on heads that were split off by a transpose: they do not lie next to each other in memory. `reshape`
copies where it must, and products take any number of leading axes as they are."""
replace("q * (1 / math.sqrt(D)", "q.view(-1, T, D) * (1 / math.sqrt(D)")
replace("@ k.mT", "@ k.view(-1, S, D).mT")
replace("if causal:", """scores = scores.view(*q.shape[:-1], S)
    if causal:""")

# %% beta-after-the-mask price=0.2
"""At beta = 0 a blocked key gives NaN: you multiply by beta after the scores were set to -inf, and 0 times infinity has
no value. Multiply first, then block."""
replace("(q * (1 / math.sqrt(D) if beta is None else beta)) @ k.mT", "q @ k.mT")
replace("softargmax(scores)", "softargmax(scores * (1 / math.sqrt(D) if beta is None else beta))")

# %% another-rows-mask
"""Each example is masked with another example's padding: row b of the mask belongs to example b."""
replace("key_padding_mask.reshape(-1, *heads, S)", "key_padding_mask.roll(1, 0).reshape(-1, *heads, S)")

# %% first-rows-mask
"""Every example is masked with the padding of the first: the batch axis of the mask is lost."""
replace("key_padding_mask.reshape(-1, *heads, S)", "key_padding_mask[:1].reshape(-1, *heads, S)")

# %% weights-detached price=0.3
"""The output is right, but no gradient reaches q and k: the weights are detached before they meet the values."""
replace("return weights @ v, weights", "return weights.detach() @ v, weights")

# %% causal-sees-one-ahead
"""Each query sees one key too many, the one after its own place: your triangle is shifted by one."""
replace("triu(S - T + 1)", "triu(S - T + 2)")

# %% causal-square-only price=0.3
"""Your causal mask is square, so a call with T != S fails. It is T by S, aligned at the bottom right."""
replace("torch.ones(T, S, dtype", "torch.ones(T, T, dtype")
replace("triu(S - T + 1)  # [T, S]", "triu(1)")

# %% beta-ignored price=0.2
"""A given beta changes nothing: the scale is always 1 / sqrt(D)."""
replace("1 / math.sqrt(D) if beta is None else beta", "1 / math.sqrt(D)")

# %% padding-on-queries
"""Your mask blocks queries, the rows of the scores, where it should block keys, the columns."""
replace("scores.masked_fill(key_padding_mask.reshape(-1, *heads, S), -math.inf)",
        "scores.masked_fill(key_padding_mask.reshape(-1, *heads, S).mT[..., :T, :], -math.inf)")

# %% keys-for-values
"""Your output is the weighted sum of the keys. The values are what is handed over."""
replace("return weights @ v, weights", "return weights @ k, weights")

# %% scale-from-the-keys-number
"""You scale by the root of S, the number of keys. The scale is the root of D, the width that the dot product runs
over."""
replace("math.sqrt(D)", "math.sqrt(S)")

# %% scaled-by-value-width
"""You scale by the root of the width of the values. The dot product runs over queries and keys: D is the last axis of
q, and the values may be wider or narrower."""
replace("math.sqrt(D)", "math.sqrt(v.shape[-1])")

# %% mask-one-axis-short price=0.25
"""With heads your padding mask meets the wrong axis: [B, 1, S] lines its batch up with the heads. It needs an axis for
the heads and one for the queries, [B, 1, 1, S]."""
replace("key_padding_mask.reshape(-1, *heads, S)", "key_padding_mask[:, None]")

# %% padding-dropped-when-causal price=0.25
"""With causal=True your attention forgets the padding: an `elif`, or an overwritten mask, lets one of the two win. A key
is blocked if either mask blocks it."""
replace("if key_padding_mask is not None:", "if key_padding_mask is not None and not causal:")

# %% weights-before-the-mask price=0.2
"""Your output is right, and the weights that you return are those from before the masks. Return the very weights that
meet the values."""
replace("return weights @ v, weights",
        "return weights @ v, softargmax((q * (1 / math.sqrt(D) if beta is None else beta)) @ k.mT)")

# %% padded-values-zeroed
"""You put the *values* of padded keys to zero. Their scores still take part in the softmax, so they take weight away
from the others. Block the scores."""
replace("scores = scores.masked_fill(key_padding_mask.reshape(-1, *heads, S), -math.inf)",
        "v = v.masked_fill(key_padding_mask.reshape(-1, *heads, S).mT, 0.0)")

# %% padding-on-queries-in-self-attention price=0.3
"""Where there are as many queries as keys your mask blocks queries, the rows, in place of keys, the columns. A padded
*key* gets no weight from any query, in self-attention too."""
replace("key_padding_mask.reshape(-1, *heads, S), -math.inf",
        "key_padding_mask.reshape(-1, *heads, S).mT if T == S else key_padding_mask.reshape(-1, *heads, S), -math.inf")

# %% mask-changed-in-place price=0.2
"""After your call the caller's mask is different: you write into it. Combine masks into a new tensor, with `|`."""
replace("heads = [1] * (q.dim() - 2)", """heads = [1] * (q.dim() - 2)
        key_padding_mask.logical_not_()
        key_padding_mask = ~key_padding_mask""")
