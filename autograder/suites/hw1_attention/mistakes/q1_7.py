# %% softmax-over-queries
"""Your weights sum to 1 over the queries, not over the keys: look at the axis of the softmax."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf), dim=-2)
    return weights @ v, weights


# %% unscaled
"""Without beta your scores are the plain dot products: the card's scale, one over the root of the width, is
missing and the weights are too sharp."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1.0 if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% scaled-by-d
"""You divide the dot products by the width itself: your weights are too flat. The standard deviation of the
dot product grows like the root of the width."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / q.shape[-1] if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% scaled-by-model-width
"""With heads you scale by the root of H * Dh, the width of the whole model. The dot product runs over one
head only, and so does the scale."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    width = q.shape[-1] * (q.shape[1] if q.dim() == 4 else 1)
    beta = 1 / math.sqrt(width) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% beta-on-top-of-scale
"""A given beta replaces the scale 1 / sqrt(Dh); you multiply the two."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = (1.0 if beta is None else beta) / math.sqrt(q.shape[-1])
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% beta-zero-taken-for-none
"""beta = 0 must give uniform weights, yet you fall back on the default: `or` and `if beta` treat 0 like None.
Ask for None itself."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = beta or 1 / math.sqrt(q.shape[-1])
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% padding-polarity-inverted
"""You attend to the padding only: on the card True means padding, and you read True as "may be attended
to"."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | ~key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% padding-score-zero
"""You set the scores of padded keys to 0, but exp(0) = 1: a score of 0 still earns weight. What score gives
weight zero?"""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        scores = scores.masked_fill(key_padding_mask.view(-1, *[1] * (q.dim() - 2), S), 0.0)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% padding-repeated-in-wrong-order
"""With heads, sentences get one another's padding: when you repeat the mask for the heads, the copies of one
sentence must stay together, because the batch axis comes before the head axis."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None and q.dim() == 4:
        B, H = q.shape[:2]
        blocked = blocked | key_padding_mask.repeat(H, 1).view(B, H, 1, S)
    elif key_padding_mask is not None:
        blocked = blocked | key_padding_mask[:, None]
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% masked-after-softmax
"""You zero the blocked weights after the softmax, so rows sum to less than 1 and blocked keys still count in
the denominator. Block the scores first."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores).masked_fill(blocked, 0.0)
    return weights @ v, weights


# %% causal-flipped
"""Your causal mask is upside down: the first query sees everything, the last only itself. Query i may look
back to keys j <= i + (S - T)."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).tril(S - T - 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% causal-strict
"""Your causal mask also blocks the token itself: the diagonal belongs to the past and present a query may
see."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% causal-top-left
"""With fewer queries than keys your causal mask starts in the wrong corner: the last query must see every
key, so the triangle is aligned at the bottom right."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    S = k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% dead-rows-nan
"""A query with every key blocked gives NaN: a softmax over nothing but -inf is 0 / 0. The card asks for zero
weights and a zero output there."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = torch.softmax(scores.masked_fill(blocked, -math.inf), -1)
    return weights @ v, weights


# %% dead-rows-uniform
"""A query with every key blocked gets uniform weights: when every score is the same large negative number,
the softmax cannot tell that nothing may be seen. Such rows are zero."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = torch.softmax(scores.masked_fill(blocked, -1e9), -1)
    return weights @ v, weights


# %% dead-rows-unmasked
"""You add a large negative number to blocked scores. When every key of a query is blocked this shifts them
all alike and the row comes out as if nothing were masked; such rows are zero."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = torch.softmax(scores - 1e9 * blocked, -1)
    return weights @ v, weights


# %% dead-rows-nan-gradient
"""Your output is right, but a fully blocked query sends NaN gradients back: -inf is added to the scores and
the NaN is only painted over after the softmax. Blocked scores must be replaced, or such rows kept out."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    bias = torch.zeros_like(scores).masked_fill(blocked, -math.inf)
    weights = torch.nan_to_num(torch.softmax(scores + bias, -1))
    return weights @ v, weights


# %% softmax-in-float32
"""float64 inputs come back with float32 precision: the softmax is computed in float32 and cast back. Keep the
input's dtype all the way."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf).float()).to(q.dtype)
    return weights @ v, weights


# %% scores-for-weights
"""The second thing you return is the scores. Return the weights, after the softmax: non-negative, rows
summing to 1."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, scores


# %% query-scaled-in-place
"""After your call the caller's queries are different: you scale them in place. Inputs are never changed; make
a new tensor."""
def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    q *= beta
    scores = q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% fused-kernel-for-the-output
"""Your output comes from F.scaled_dot_product_attention, which this question rules out: it is what you are to build.
You have the weights already; multiply them by the values."""


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    blocked = torch.zeros(*q.shape[:-1], S, dtype=torch.bool, device=q.device)
    if causal:
        blocked = blocked | torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.reshape(len(q), *[1] * (q.dim() - 2), S)
    scale = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    weights = softargmax((scale * q @ k.mT).masked_fill(blocked, -math.inf))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=~blocked, scale=scale)
    return out.masked_fill(blocked.all(-1, keepdim=True), 0.0), weights


# %% masked-after-softmax-and-renormalised
"""You zero the blocked weights after the softmax and divide by what is left. Where a blocked key has by far the largest
score nothing is left, and a small number in the denominator spoils the digits. Block the scores before the softmax."""


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = torch.softmax(scores, -1).masked_fill(blocked, 0.0)
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)
    return weights @ v, weights


# %% causal-dropped-with-padding
"""With a padding mask your attention forgets that it is causal: the second `if` replaces what the first has blocked. A
key is blocked if either mask blocks it."""


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% padding-by-lengths
"""You count the padding and block that many keys at the end. Padding may stand at any place: block the keys that the
mask says."""


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        lengths = (~key_padding_mask).sum(1, keepdim=True)
        padding = torch.arange(S, device=q.device) >= lengths  # [B, S]
        blocked = blocked | padding.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% view-of-the-heads
"""Your `view` fails on heads that were split off by a transpose: they do not lie next to each other in memory. `reshape`
copies where it must, and products take any number of leading axes as they are."""


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    beta = 1 / math.sqrt(q.shape[-1]) if beta is None else beta
    scores = beta * q @ k.transpose(-2, -1)  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    scores = beta * (q.view(-1, *q.shape[-2:]) @ k.view(-1, *k.shape[-2:]).mT).view_as(scores)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    weights = softargmax(scores.masked_fill(blocked, -math.inf))
    return weights @ v, weights


# %% beta-after-the-mask
"""At beta = 0 a blocked key gives NaN: you multiply by beta after the scores were set to -inf, and 0 times infinity has
no value. Multiply first, then block."""


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    T, S = q.shape[-2], k.shape[-2]
    scores = q @ k.mT  # [B, (H,) T, S]
    blocked = torch.zeros_like(scores, dtype=torch.bool)
    if causal:
        blocked = blocked | torch.ones_like(blocked).triu(S - T + 1)
    if key_padding_mask is not None:
        blocked = blocked | key_padding_mask.view(-1, *[1] * (q.dim() - 2), S)
    scores = scores.masked_fill(blocked, -math.inf)
    weights = softargmax(scores * (1 / math.sqrt(q.shape[-1]) if beta is None else beta))
    return weights @ v, weights
