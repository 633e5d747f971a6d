# %% unfold-and-fold
"""torch's own sliding blocks and their inverse; their order is (channel, row, column) already."""
def patchify(images, patch):
    if images.shape[2] % patch != 0 or images.shape[3] % patch != 0:
        raise ValueError(f"{patch} does not divide {tuple(images.shape[2:])}")
    return F.unfold(images, patch, stride=patch).transpose(1, 2)


def unpatchify(patches, patch, channels, height, width):
    if height % patch != 0 or width % patch != 0:
        raise ValueError(f"{patch} does not divide {(height, width)}")
    return F.fold(patches.transpose(1, 2), (height, width), patch, stride=patch)


# %% loops-over-the-grid
"""Two loops that cut squares out and put them back; the image is built from rows of patches."""
def patchify(images, patch):
    H, W = images.shape[-2:]
    if H % patch or W % patch:
        raise ValueError("the side of a patch must divide both sides of the image")
    tokens = []
    for top in range(0, H, patch):
        for left in range(0, W, patch):
            tokens.append(images[:, :, top : top + patch, left : left + patch].flatten(1))  # [B, C*P*P]
    return torch.stack(tokens, dim=1)


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the side of a patch must divide both sides of the image")
    cols, strips = width // patch, []
    for r in range(height // patch):
        squares = [patches[:, r * cols + s].unflatten(-1, (channels, patch, patch)) for s in range(cols)]
        strips.append(torch.cat(squares, dim=-1))  # [B, C, P, W]
    return torch.cat(strips, dim=-2)


# %% pixel-shuffle
"""Patches as channels: pixel_unshuffle moves every square into the channel axis, pixel_shuffle takes it out."""
def _check_sides(patch, *sides):
    if any(side % patch for side in sides):
        raise ValueError(f"sides {sides} are no multiples of {patch}")


def patchify(images, patch):
    _check_sides(patch, *images.shape[-2:])
    return F.pixel_unshuffle(images, patch).flatten(2).mT  # [B, C*P*P, rows, cols] -> [B, N, C*P*P]


def unpatchify(patches, patch, channels, height, width):
    _check_sides(patch, height, width)
    return F.pixel_shuffle(patches.mT.unflatten(-1, (height // patch, width // patch)), patch)


# %% one-table-of-indices
"""A table says which pixel stands where; patchify gathers with it, and unpatchify with the table's inverse."""
def _pixel_table(patch, C, H, W, device):
    if H % patch or W % patch:
        raise ValueError("patch must divide height and width")
    index = torch.arange(C * H * W, device=device).view(C, H, W)
    index = index.unfold(1, patch, patch).unfold(2, patch, patch)  # [C, rows, cols, P, P]
    return index.permute(1, 2, 0, 3, 4).reshape(-1, C * patch * patch)  # [N, C*P*P]


def patchify(images, patch):
    table = _pixel_table(patch, *images.shape[1:], images.device)
    return images.flatten(1)[:, table]


def unpatchify(patches, patch, channels, height, width):
    table = _pixel_table(patch, channels, height, width, patches.device)
    return patches.flatten(1)[:, table.flatten().argsort()].view(-1, channels, height, width)


# %% einsum-of-axes
"""Six axes renamed by einsum, and a copy into an empty image on the way back."""
def patchify(images, patch):
    B, C, H, W = images.size()
    rows, left_over = divmod(H, patch)
    cols, right_over = divmod(W, patch)
    if left_over or right_over:
        raise ValueError("these images cannot be tiled")
    x = images.unflatten(3, (cols, patch)).unflatten(2, (rows, patch))
    return torch.einsum("bcrisj->brscij", x).flatten(3).flatten(1, 2)


def unpatchify(patches, patch, channels, height, width):
    if height % patch + width % patch:
        raise ValueError("these images cannot be tiled")
    B, N, _ = patches.shape
    x = patches.unflatten(2, (channels, patch, patch))
    images = patches.new_zeros(B, channels, height, width)
    for n in range(N):
        top, left = n // (width // patch) * patch, n % (width // patch) * patch
        images[:, :, top : top + patch, left : left + patch] = x[:, n]
    return images
