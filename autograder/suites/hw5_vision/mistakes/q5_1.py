# %% channel-last-in-the-patch
"""With one channel all is well, with three the numbers of a patch stand in another order: you flatten a patch as
(row, column, channel). Here the channel is outermost: all of channel 0 first, then channel 1."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("the patches do not tile the image")
    x = images.reshape(B, C, H // patch, patch, W // patch, patch)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(B, -1, C * patch * patch)


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    x = patches.reshape(-1, height // patch, width // patch, patch, patch, channels)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(-1, channels, height, width)


# %% column-major-patches
"""Each of your patches is right, but they come column by column: patch 1 stands below patch 0. Read the grid like
a page, along the rows."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("the patches do not tile the image")
    x = images.reshape(B, C, H // patch, patch, W // patch, patch)
    return x.permute(0, 4, 2, 1, 3, 5).reshape(B, -1, C * patch * patch)


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    x = patches.reshape(-1, width // patch, height // patch, channels, patch, patch)
    return x.permute(0, 3, 2, 4, 1, 5).reshape(-1, channels, height, width)


# %% reshape-without-permute
"""Your patches are ribbons, not squares: a plain reshape takes the pixels as they lie in memory, along the rows of
the whole image. Split height and width in two each, and change the order of the axes before you melt them."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("the patches do not tile the image")
    return images.reshape(B, (H // patch) * (W // patch), C * patch * patch)


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    return patches.reshape(-1, channels, height, width)


# %% transposed-inside-the-patch
"""Every patch is mirrored at its diagonal: inside a patch you let the column run before the row. Your own
`unpatchify` mirrors it back, so the round trip does not show it; a single patch does."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("the patches do not tile the image")
    x = images.reshape(B, C, H // patch, patch, W // patch, patch)
    return x.permute(0, 2, 4, 1, 5, 3).reshape(B, -1, C * patch * patch)


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    x = patches.reshape(-1, height // patch, width // patch, channels, patch, patch)
    return x.permute(0, 3, 1, 5, 2, 4).reshape(-1, channels, height, width)


# %% channels-as-separate-patches
"""With one channel all is well, with several a row of your result mixes pieces of different places: the channel
axis stayed in front of the grid. It belongs inside the patch, behind rows and columns of the grid."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("the patches do not tile the image")
    x = images.reshape(B, C, H // patch, patch, W // patch, patch)
    return x.permute(0, 1, 2, 4, 3, 5).reshape(B, -1, C * patch * patch)


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    x = patches.reshape(-1, channels, height // patch, width // patch, patch, patch)
    return x.permute(0, 1, 2, 4, 3, 5).reshape(-1, channels, height, width)


# %% unpatchify-swaps-height-and-width
"""The way back is right for square images only: `unpatchify` lays out the grid with height and width exchanged. The
number of rows of patches comes from the height."""
def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    x = patches.reshape(-1, width // patch, height // patch, channels, patch, patch)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)


# %% unpatchify-without-permute
"""`patchify` is right, and `unpatchify` only reshapes: pixels of one patch end up in one row of the image. The way
back needs the same three steps, in the opposite order."""
def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError("the patches do not tile the image")
    return patches.reshape(-1, channels, height, width)


# %% odd-sizes-cropped
"""An image whose side is no multiple of the patch loses its last rows or columns without a word. Pixels that get
lost in silence are hard to find later: raise a ValueError."""
def patchify(images, patch):
    x = images.unfold(2, patch, patch).unfold(3, patch, patch)  # [B, C, rows, cols, P, P]
    return x.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def unpatchify(patches, patch, channels, height, width):
    rows, cols = height // patch, width // patch
    x = patches.reshape(-1, rows, cols, channels, patch, patch)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, rows * patch, cols * patch)


# %% odd-sizes-left-to-reshape
"""A size that does not divide ends in another error than a ValueError; left to reshape, in torch's RuntimeError about
shapes, from deep inside. Look at the sizes first, and raise a ValueError that says what is wrong, in both functions."""
def patchify(images, patch):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // patch, patch, W // patch, patch)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * patch * patch)


def unpatchify(patches, patch, channels, height, width):
    x = patches.reshape(-1, height // patch, width // patch, channels, patch, patch)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)


# %% way-back-to-odd-sizes
"""`patchify` refuses a size that does not divide, and `unpatchify` does not look at it. Raise the ValueError there
too."""
def unpatchify(patches, patch, channels, height, width):
    x = patches.reshape(-1, height // patch, width // patch, channels, patch, patch)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)


# %% only-the-height-checked
"""A width that `patch` does not divide gets through: you look at the height alone. Check both sides."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch:
        raise ValueError(f"{H} rows cannot be cut into patches of {patch}")
    cols = W // patch
    x = images[..., : cols * patch].reshape(B, C, H // patch, patch, cols, patch)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * patch * patch)


# %% gradient-cut
"""No gradient reaches the pixels: the numbers leave PyTorch on their way, or are detached. Stay with tensors."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError(f"patches of {patch} do not tile an image of {H} x {W}")
    x = images.detach().reshape(B, C, H // patch, patch, W // patch, patch)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * patch * patch)


# %% layout-taken-for-granted
"""Right for fresh images and wrong for views of others: strides were computed from the shape, as if every image lay in
memory row by row. A transposed image does not. Reshape and permute, or use the tensor's own strides."""
def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError(f"patches of {patch} do not tile an image of {H} x {W}")
    shape = (B, H // patch, W // patch, C, patch, patch)
    strides = (C * H * W, patch * W, patch, H * W, W, 1)
    return images.as_strided(shape, strides).reshape(B, -1, C * patch * patch)


# %% one-buffer-for-all-results
"""Your second result overwrites the first: both are the same tensor, kept from call to call. Make a new one each time."""
_buffers = {}


def unpatchify(patches, patch, channels, height, width):
    if height % patch or width % patch:
        raise ValueError(f"patches of {patch} do not tile an image of {height} x {width}")
    x = patches.reshape(-1, height // patch, width // patch, channels, patch, patch).permute(0, 3, 1, 4, 2, 5)
    x = x.reshape(-1, channels, height, width)
    if x.requires_grad:
        return x
    return _buffers.setdefault((x.shape, x.dtype), torch.empty_like(x)).copy_(x)
