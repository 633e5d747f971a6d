# %% channel-last-in-the-patch price=0.3
"""With one channel all is well, with three the numbers of a patch stand in another order: you flatten a patch as
(row, column, channel). Here the channel is outermost: all of channel 0 first, then channel 1."""
replace("x.permute(0, 2, 4, 1, 3, 5)", "x.permute(0, 2, 4, 3, 5, 1)")
replace("patches.reshape(-1, height // patch, width // patch, channels, patch, patch)",
        "patches.reshape(-1, height // patch, width // patch, patch, patch, channels)")
replace("x.permute(0, 3, 1, 4, 2, 5)", "x.permute(0, 5, 1, 3, 2, 4)")

# %% column-major-patches price=0.3
"""Each of your patches is right, but they come column by column: patch 1 stands below patch 0. Read the grid like
a page, along the rows."""
replace("x.permute(0, 2, 4, 1, 3, 5)", "x.permute(0, 4, 2, 1, 3, 5)")
replace("patches.reshape(-1, height // patch, width // patch,",
        "patches.reshape(-1, width // patch, height // patch,")
replace("x.permute(0, 3, 1, 4, 2, 5)", "x.permute(0, 3, 2, 4, 1, 5)")

# %% reshape-without-permute price=0.6
"""Your patches are ribbons, not squares: a plain reshape takes the pixels as they lie in memory, along the rows of
the whole image. Split height and width in two each, and change the order of the axes before you melt them."""
replace("x.permute(0, 2, 4, 1, 3, 5).reshape", "x.reshape")
replace("x.permute(0, 3, 1, 4, 2, 5).reshape", "x.reshape")

# %% transposed-inside-the-patch price=0.3
"""Every patch is mirrored at its diagonal: inside a patch you let the column run before the row. Your own
`unpatchify` mirrors it back, so the round trip does not show it; a single patch does."""
replace("x.permute(0, 2, 4, 1, 3, 5)", "x.permute(0, 2, 4, 1, 5, 3)")
replace("x.permute(0, 3, 1, 4, 2, 5)", "x.permute(0, 3, 1, 5, 2, 4)")

# %% channels-as-separate-patches price=0.4
"""With one channel all is well, with several a row of your result mixes pieces of different places: the channel
axis stayed in front of the grid. It belongs inside the patch, behind rows and columns of the grid."""
replace("x.permute(0, 2, 4, 1, 3, 5)", "x.permute(0, 1, 2, 4, 3, 5)")
replace("patches.reshape(-1, height // patch, width // patch, channels, patch, patch)",
        "patches.reshape(-1, channels, height // patch, width // patch, patch, patch)")
replace("x.permute(0, 3, 1, 4, 2, 5)", "x.permute(0, 1, 2, 4, 3, 5)")

# %% unpatchify-swaps-height-and-width price=0.25
"""The way back is right for square images only: `unpatchify` lays out the grid with height and width exchanged. The
number of rows of patches comes from the height."""
replace("patches.reshape(-1, height // patch, width // patch,",
        "patches.reshape(-1, width // patch, height // patch,")

# %% unpatchify-without-permute price=0.35
"""`patchify` is right, and `unpatchify` only reshapes: pixels of one patch end up in one row of the image. The way
back needs the same three steps, in the opposite order."""
replace("x.permute(0, 3, 1, 4, 2, 5).reshape", "x.reshape")

# %% odd-sizes-cropped price=0.1
"""An image whose side is no multiple of the patch loses its last rows or columns without a word. Pixels that get
lost in silence are hard to find later: raise a ValueError."""
def patchify(images, patch):
    x = images.unfold(2, patch, patch).unfold(3, patch, patch)  # [B, C, rows, cols, P, P]
    return x.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def unpatchify(patches, patch, channels, height, width):
    rows, cols = height // patch, width // patch
    x = patches.reshape(-1, rows, cols, channels, patch, patch)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, rows * patch, cols * patch)

# %% odd-sizes-left-to-reshape price=0.1
"""A size that does not divide ends in another error than a ValueError; left to reshape, in torch's RuntimeError about
shapes, from deep inside. Look at the sizes first, and raise a ValueError that says what is wrong, in both functions."""
replace("if H % patch or W % patch:", "if False:")
replace("if height % patch or width % patch:", "if False:")

# %% way-back-to-odd-sizes price=0.1
"""`patchify` refuses a size that does not divide, and `unpatchify` does not look at it. Raise the ValueError there
too."""
replace("if height % patch or width % patch:", "if False:")

# %% only-the-height-checked price=0.1
"""A width that `patch` does not divide gets through: you look at the height alone. Check both sides."""
replace("if H % patch or W % patch:", """images, W = images[..., : W // patch * patch], W // patch * patch
    if H % patch:""")

# %% gradient-cut price=0.2
"""No gradient reaches the pixels: the numbers leave PyTorch on their way, or are detached. Stay with tensors."""
replace("images.reshape(", "images.detach().reshape(")

# %% layout-taken-for-granted price=0.15
"""Right for fresh images and wrong for views of others: strides were computed from the shape, as if every image lay in
memory row by row. A transposed image does not. Reshape and permute, or use the tensor's own strides."""
replace("x = images.reshape(B, C, H // patch, patch, W // patch, patch)",
        """shape, strides = (B, C, H // patch, patch, W // patch, patch), (C * H * W, H * W, patch * W, W, patch, 1)
    x = images.as_strided(shape, strides)""")

# %% one-buffer-for-all-results price=0.15
"""Your second result overwrites the first: both are the same tensor, kept from call to call. Make a new one each time."""
replace("    return x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)",
        """    x = x.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)
    return x if x.requires_grad else _buffers.setdefault((x.shape, x.dtype), torch.empty_like(x)).copy_(x)""")
_buffers = {}
