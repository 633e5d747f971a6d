# %% windows-as-batch
"""Windows folded into the batch; transposes in front of and behind F.scaled_dot_product_attention; costs from a
table."""
def window_attention(q, k, v, window):
    B, N, D = q.shape
    if N % window != 0:
        raise ValueError(f"{N} tokens do not split into windows of {window}")
    q, k, v = (x.reshape(B * (N // window), window, -1) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).reshape(B, N, -1)


def channel_attention(q, k, v):
    q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)


def attention_cost(N, D, kind):
    return {"patches": 4 * N**2 * D, "channels": 4 * N * D**2}[kind]


def strided_attention(q, k, v, stride):
    B, N, D = q.shape
    if N % stride != 0:
        raise ValueError(f"{N} tokens do not split into {stride} groups")
    q, k, v = (x.reshape(B, N // stride, stride, D).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, N, D)


# %% window-by-window
"""A loop over windows with q1_7's attention; channels by a loop over query channels."""
def window_attention(q, k, v, window):
    N = q.shape[1]
    if N % window:
        raise ValueError("the window must divide the number of tokens")
    outs = []
    for start in range(0, N, window):
        here = slice(start, start + window)
        out, _ = attention(q[:, here], k[:, here], v[:, here])
        outs.append(out)
    return torch.cat(outs, dim=1)


def channel_attention(q, k, v):
    columns = []
    for c in range(q.shape[2]):
        scores = (q[:, :, c : c + 1] * k).sum(1) / math.sqrt(q.shape[1])  # [B, D]
        weights = torch.softmax(scores, -1)
        columns.append((weights[:, None, :] * v).sum(-1))
    return torch.stack(columns, -1)


def attention_cost(N, D, kind):
    tokens, width = (N, D) if kind == "patches" else (D, N)
    scores = 2 * tokens * width * tokens
    values = 2 * tokens * tokens * width
    return scores + values


def strided_attention(q, k, v, stride):
    if q.shape[1] % stride:
        raise ValueError("the stride must divide the number of tokens")
    groups = [attention(q[:, r::stride], k[:, r::stride], v[:, r::stride])[0] for r in range(stride)]
    return torch.stack(groups, dim=2).flatten(1, 2)


# %% unfolded-windows
"""Windows by unfold, weights by the given softargmax; channels by einsum; the cost as a 0-dim tensor."""
def window_attention(q, k, v, window):
    if q.shape[1] % window > 0:
        raise ValueError("N % window != 0")
    q, k, v = (x.unfold(1, window, window) for x in (q, k, v))  # [B, N / w, D, w]
    weights = softargmax(torch.einsum("bmdi,bmdj->bmij", q, k), beta=q.shape[2] ** -0.5)
    out = torch.einsum("bmij,bmdj->bmid", weights, v)
    return out.reshape(out.shape[0], -1, out.shape[-1])


def channel_attention(q, k, v):
    scores = torch.einsum("bnc,bnd->bcd", q, k) / q.shape[1] ** 0.5
    return torch.einsum("bcd,bnd->bnc", F.softmax(scores, dim=-1), v)


def attention_cost(N, D, kind):
    squared, other = {"patches": (N, D), "channels": (D, N)}[kind]
    return torch.tensor(2 * 2 * squared**2 * other)


def strided_attention(q, k, v, stride):
    N = q.shape[1]
    if N % stride > 0:
        raise ValueError("N % stride != 0")
    place = torch.arange(N, device=q.device) % stride
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(place[:, None] != place, -math.inf)
    return softargmax(scores) @ v


# %% einops
"""Axes named with einops; the channel weights applied from the right; costs measured on the meta device."""
import einops
from torch.utils.flop_counter import FlopCounterMode


def window_attention(q, k, v, window):
    if q.shape[-2] % window != 0:
        raise ValueError("cannot cut evenly")
    q, k, v = (einops.rearrange(x, "b (m w) d -> b m w d", w=window) for x in (q, k, v))
    scores = einops.einsum(q, k, "b m i d, b m j d -> b m i j") / math.sqrt(q.shape[-1])
    out = einops.einsum(softargmax(scores), v, "b m i j, b m j d -> b m i d")
    return einops.rearrange(out, "b m w d -> b (m w) d")


def channel_attention(q, k, v):
    scores = einops.rearrange(k, "b n d -> b d n") @ q  # [B, D keys, D queries]
    return v @ softargmax(scores, beta=q.shape[1] ** -0.5, dim=1)


def attention_cost(N, D, kind):
    tokens, width = (N, D) if kind == "patches" else (D, N)
    x = torch.empty(tokens, width, device="meta")
    with FlopCounterMode(display=False) as counter:
        (x @ x.mT) @ x
    return counter.get_total_flops()


def strided_attention(q, k, v, stride):
    if q.shape[-2] % stride != 0:
        raise ValueError("cannot deal out evenly")
    q, k, v = (einops.rearrange(x, "b (m s) d -> b s m d", s=stride) for x in (q, k, v))
    weights = softargmax(einops.einsum(q, k, "b s i d, b s j d -> b s i j") / math.sqrt(q.shape[-1]))
    return einops.rearrange(weights @ v, "b s m d -> b (m s) d")


# %% heads-as-windows
"""The windows stand where attention expects heads; channel attention as the function of transposed tensors;
floats."""
def window_attention(q, k, v, window):
    B, N, D = q.shape
    windows, left_over = divmod(N, window)
    if left_over:
        raise ValueError(f"{left_over} tokens are left over")
    q, k, v = (x.unflatten(1, (windows, window)) for x in (q, k, v))
    return attention(q, k, v)[0].flatten(1, 2)


def channel_attention(q, k, v):
    out, _ = attention(*(x.mT for x in (q, k, v)))
    return out.mT


def attention_cost(N, D, kind):
    return 4.0 * N * D * (N if kind == "patches" else D)


def strided_attention(q, k, v, stride):
    if q.shape[1] % stride:
        raise ValueError("tokens are left over")
    order = torch.arange(q.shape[1], device=q.device).reshape(-1, stride).T.flatten()
    out = window_attention(q[:, order], k[:, order], v[:, order], q.shape[1] // stride)
    return out[:, order.argsort()]
