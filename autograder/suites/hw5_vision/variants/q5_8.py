# %% a-row-from-the-left
"""Only row 0 is carried, from the last layer down to the first; the weights of the probe from the parts of the
model."""
def attention_rollout(weights):
    row = torch.zeros_like(weights[0][:, 0, :1])  # [B, 1, N]
    row[..., 0] = 1
    for layer in reversed(weights):
        row = 0.5 * (row @ layer.mean(dim=1)) + 0.5 * row
    return row.squeeze(1)


@torch.no_grad()
def map_attention(model, images):
    x = model.embed(images)
    H, W, N = *images.shape[2:], x.shape[1]
    patch, side = math.isqrt(H * W // N), math.isqrt(model.positions.shape[1])
    x = x + resize_positions(model.positions, (side, side), (H // patch, W // patch))
    for layer in model.layers:
        x = layer(x)
    probe = model.map_head.probe.expand(len(x), -1, -1)
    tokens = model.norm(x)
    _, weights = model.map_head.attn(probe, tokens, tokens)
    return weights.squeeze(2).mean(1)


# %% reduce-of-matrices
"""All mixing matrices first, chained by reduce; a pre-hook catches the tokens that reach the MAP head, the scores are
computed by hand."""
from functools import reduce


def attention_rollout(weights):
    N = weights[0].size(-1)
    eye = torch.eye(N, dtype=weights[0].dtype, device=weights[0].device)
    steps = [(A.sum(1) / A.size(1) + eye) / 2 for A in weights]
    return reduce(lambda done, step: torch.bmm(step, done), steps)[:, 0, :]


def map_attention(model, images):
    tokens = []
    handle = model.map_head.register_forward_pre_hook(lambda module, args: tokens.append(args[0]))
    try:
        with torch.no_grad():
            model(images)
            head, x = model.map_head, tokens[-1]
            q = split_heads(head.attn.q_proj(head.probe), head.attn.n_heads)  # [1, H, 1, Dh]
            k = split_heads(head.attn.k_proj(x), head.attn.n_heads)  # [B, H, N, Dh]
            scores = (q * k).sum(-1) / math.sqrt(q.shape[-1])  # [B, H, N]
    finally:
        handle.remove()
    return torch.softmax(scores, -1).mean(1)


# %% einsum-and-a-listener
"""einsum with the mean over heads inside; the model's head is exchanged for a listener while the images pass
through."""
def attention_rollout(weights):
    B, H, N, _ = weights[0].shape
    R = torch.eye(N, dtype=weights[0].dtype, device=weights[0].device).expand(B, N, N)
    for A in weights:
        R = R / 2 + torch.einsum("bhij,bjk->bik", A, R) / (2 * H)
    return R.select(1, 0)


class _Listener(nn.Module):
    def __init__(self, attn):
        super().__init__()
        self.attn, self.heard = attn, None

    def forward(self, *args, **kwargs):
        out, self.heard = self.attn(*args, **kwargs)
        return out, self.heard


def map_attention(model, images):
    own = model.map_head.attn
    listener = _Listener(own)
    model.map_head.attn = listener
    try:
        with torch.no_grad():
            model(images)
    finally:
        model.map_head.attn = own
    return torch.mean(listener.heard, dim=1)[:, 0]


# %% image-by-image
"""Loops over images and layers, the product in full from the left; a hook on the attention, called with gradients
on."""
def attention_rollout(weights):
    rows = []
    for b in range(weights[0].shape[0]):
        R = None
        for layer in weights:
            A = torch.stack([*layer[b]]).mean(0)
            A = 0.5 * A + 0.5 * torch.diag(torch.ones_like(A[0]))
            R = A if R is None else A @ R
        rows.append(R[0])
    return torch.stack(rows)


def map_attention(model, images):
    kept = {}

    def keep(module, args, output):
        kept["weights"] = output[1].detach()

    hook = model.map_head.attn.register_forward_hook(keep)
    maps = []
    for image in images.split(1):
        model(image)
        maps.append(kept["weights"].mean(dim=(1, 2)))
    hook.remove()
    return torch.cat(maps)
