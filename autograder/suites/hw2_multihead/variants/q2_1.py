# %% einops
"""Axes named with einops."""
import einops


def split_heads(x, n_heads):
    return einops.rearrange(x, "b n (h d) -> b h n d", h=n_heads)


def merge_heads(x):
    return einops.rearrange(x, "b h n d -> b n (h d)")


# %% chunks-and-concatenation
"""The columns cut into blocks and stacked; merged by concatenation."""
def split_heads(x, n_heads):
    return torch.stack(torch.chunk(x, n_heads, dim=-1), dim=1)


def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


# %% unflatten-and-flatten
"""unflatten, movedim and flatten."""
def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, 1)


def merge_heads(x):
    return x.movedim(1, -2).flatten(-2)


# %% slices-written-into-place
"""A new tensor filled head by head from slices of columns."""
def split_heads(x, n_heads):
    B, N, D = x.shape
    width = D // n_heads
    heads = x.new_empty(B, n_heads, N, width)
    for h in range(n_heads):
        heads[:, h] = x[:, :, h * width : (h + 1) * width]
    return heads


def merge_heads(x):
    B, H, N, Dh = x.shape
    merged = torch.zeros((B, N, H * Dh), dtype=x.dtype, device=x.device)
    for h in range(H):
        merged[..., h * Dh : (h + 1) * Dh] = x[:, h]
    return merged


# %% gathered-columns
"""The columns of each head picked by a table of indices; merged through a contiguous copy and view."""
def split_heads(x, n_heads):
    columns = torch.arange(x.shape[-1], device=x.device).view(n_heads, -1)  # [H, Dh]
    return x[:, :, columns].permute(0, 2, 1, 3)


def merge_heads(x):
    B, H, N, Dh = x.size()
    return x.transpose(1, 2).contiguous().view(B, N, H * Dh)
