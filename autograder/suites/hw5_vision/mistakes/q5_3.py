# %% corners-aligned price=0.25
"""You are right in the middle and off towards the border: the corners of the two grids are aligned. Here positions
are the centres of patches, so `align_corners=False`."""
replace("align_corners=False", "align_corners=True")

# %% bilinear price=0.3
"""Between old positions you draw straight lines: the interpolation is bilinear. Asked for is the bicubic one, which
is smoother and may go a little beyond the old values."""
replace('mode="bicubic"', 'mode="bilinear"')

# %% antialiased price=0.2
"""Constant tables stay and everything else is a little off, smaller grids most: antialiasing takes another cubic
kernel, and widens it when the grid shrinks. The convention here is without it."""
replace("align_corners=False", "align_corners=False, antialias=True")

# %% features-not-moved price=0.5
"""Your table is laid out as an image without moving its feature axis, so features and places are mixed. A reshape
never exchanges axes: first [1, D, N], then the grid."""
replace("positions.mT.unflatten(-1, tuple(old_grid))", "positions.reshape(1, -1, *old_grid)")

# %% grids-read-as-width-and-height price=0.3
"""Square grids are right, others are not: you read both grids as (cols, rows). Rows come first, and the table is
row-major."""
replace("if tuple(old_grid) == tuple(new_grid):", """old_grid, new_grid = old_grid[::-1], new_grid[::-1]
    if tuple(old_grid) == tuple(new_grid):""")

# %% new-grid-swapped price=0.3
"""The result has the right length, and its places are wrong where the new grid is not square: rows and columns of
the new grid are exchanged. Sizes of images are (rows, cols) in `F.interpolate` too."""
replace("tuple(new_grid), mode", "(new_grid[1], new_grid[0]), mode")

# %% old-grid-swapped price=0.3
"""Square tables are right, others are not: you lay the old table out with rows and columns exchanged. It is
row-major, and `old_grid` is (rows, cols)."""
replace("unflatten(-1, tuple(old_grid))", "unflatten(-1, (old_grid[1], old_grid[0]))")

# %% nearest-neighbour price=0.4
"""Your new positions are copies of old ones: each takes that of the nearest place. Asked for is bicubic
interpolation, between the places."""
replace('mode="bicubic", align_corners=False', 'mode="nearest"')

# %% stretched-as-a-line price=0.6
"""You stretch the list of N positions as if it were one line, so the end of one row of patches is mixed with the
beginning of the next. Lay the list out as a grid and stretch that."""
replace("positions.mT.unflatten(-1, tuple(old_grid))", "positions.mT[:, :, None]")
replace("tuple(new_grid), mode", "(1, new_grid[0] * new_grid[1]), mode")

# %% same-number-taken-for-same-grid price=0.15
"""From a 2 x 6 grid to a 3 x 4 grid you change nothing: both have 12 places, but not the same ones. Compare the
grids, not the numbers of positions."""
replace("if tuple(old_grid) == tuple(new_grid):", "if positions.shape[1] == new_grid[0] * new_grid[1]:")

# %% scale-with-an-offset price=0.2
"""Everything is shifted a little, more so for small grids: you give a scale factor with 0.1 added against rounding,
and the interpolation then works with that scale. Give the new size itself."""
replace("image = F.interpolate(image, tuple(new_grid),",
        """scale = [(new + 0.1) / old for new, old in zip(new_grid, old_grid, strict=True)]
    image = F.interpolate(image, scale_factor=scale,""")

# %% gradient-cut price=0.2
"""The numbers are right, but no gradient comes back to the old table: `.data` or `no_grad` cuts it off, and
positions could not be trained at another size."""
replace("positions.mT", "positions.data.mT")

# %% kept-from-an-earlier-call price=0.15
"""After a step of training the old positions come back: you keep the resized table and do not look whether the positions
have changed. Resize in every call."""
replace("return image.flatten(2).mT", """key = (id(positions), tuple(old_grid), tuple(new_grid))
    return _resized.setdefault(key, (positions, image.flatten(2).mT))[1]""")
_resized = {}  # with the tables, so that no id is given away

# %% float32-inside price=0.1
"""Right to seven digits only: the positions pass through float32 on their way. Keep the dtype that they came in."""
replace("positions.mT", "positions.float().mT")
replace("image.flatten(2).mT", "image.flatten(2).mT.to(positions.dtype)")

# %% one-side-for-both price=0.3
"""Square grids are right, others are not: you take the root of the number of places for both sides. Use `old_grid` as it is
given."""
replace("positions.mT.unflatten(-1, tuple(old_grid))",
        "positions.mT.unflatten(-1, (math.isqrt(positions.shape[1]), -1))")
