# %% always-interpolated
"""No case for equal grids: there the interpolation gives back what it gets. A row-major reshape, then permute."""
def resize_positions(positions, old_grid, new_grid):
    rows, cols = old_grid
    image = positions.reshape(1, rows, cols, -1).permute(0, 3, 1, 2)
    image = nn.Upsample(size=(int(new_grid[0]), int(new_grid[1])), mode="bicubic")(image)
    return image.permute(0, 2, 3, 1).reshape(1, new_grid[0] * new_grid[1], -1)


# %% one-axis-after-the-other
"""Bicubic interpolation is separable: rows first, then columns."""
def resize_positions(positions, old_grid, new_grid):
    image = positions.transpose(1, 2).unflatten(2, tuple(old_grid))  # [1, D, rows, cols]
    tall = F.interpolate(image, size=(new_grid[0], old_grid[1]), mode="bicubic", align_corners=False)
    wide = F.interpolate(tall, size=(new_grid[0], new_grid[1]), mode="bicubic", align_corners=False)
    return wide.flatten(2).transpose(1, 2)


# %% matrices-by-hand
"""The cubic kernel with a = -0.75 written out: one matrix for the rows and one for the columns."""
def _cubic_matrix(old, new, like):
    steps = torch.arange(new, device=like.device)
    centre = (steps.double() + 0.5) * old / new - 0.5
    first = centre.floor()
    M = torch.zeros(new, old, dtype=torch.float64, device=like.device)
    for tap in range(-1, 3):
        t = (centre - first - tap).abs()
        near = 1.25 * t**3 - 2.25 * t**2 + 1
        far = -0.75 * (t**3 - 5 * t**2 + 8 * t - 4)
        weight = torch.where(t <= 1, near, torch.where(t < 2, far, 0.0))
        place = (first + tap).clamp(0, old - 1).long()  # the border is repeated
        M[steps, place] += weight
    return M.to(like)


def resize_positions(positions, old_grid, new_grid):
    R = _cubic_matrix(old_grid[0], new_grid[0], positions)
    S = _cubic_matrix(old_grid[1], new_grid[1], positions)
    table = positions.reshape(old_grid[0], old_grid[1], -1)
    return torch.einsum("ar,bs,rsd->abd", R, S, table).reshape(1, -1, positions.shape[-1])


# %% sampled-on-a-grid
"""The new centres as coordinates from -1 to 1, read off by grid_sample with the border repeated."""
def resize_positions(positions, old_grid, new_grid):
    if list(old_grid) == list(new_grid):
        return positions.clone()
    like = {"dtype": positions.dtype, "device": positions.device}
    y = (torch.arange(new_grid[0], **like) * 2 + 1) / new_grid[0] - 1
    x = (torch.arange(new_grid[1], **like) * 2 + 1) / new_grid[1] - 1
    places = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)[None]  # [1, rows', cols', (x, y)]
    image = positions.mT.reshape(1, -1, *old_grid)
    image = F.grid_sample(image, places, mode="bicubic", padding_mode="border", align_corners=False)
    return image.flatten(2).mT


# %% feature-by-feature
"""Each feature is a picture of its own in the batch axis."""
def resize_positions(positions, old_grid, new_grid):
    if old_grid[0] == new_grid[0] and old_grid[1] == new_grid[1]:
        return positions
    resized = []
    for feature in positions[0].unbind(-1):  # [N]
        picture = feature.reshape(1, 1, old_grid[0], old_grid[1])
        resized.append(F.interpolate(picture, size=[*new_grid], mode="bicubic").reshape(-1))
    return torch.stack(resized, dim=-1)[None]
