# %% a-loop
"""Point by point, into a list."""
def assign(points, centers):
    return np.array([np.linalg.norm(centers - point, axis=1).argmin() for point in points], dtype=int)


# %% centers-first
"""Broadcast the other way round, with the root, in 32 bits."""
def assign(points, centers):
    distances = np.sqrt(np.square(centers[:, None, :] - points[None, :, :]).sum(2))
    return distances.argmin(0).astype(np.int32)


# %% einsum
"""Squares by einsum."""
def assign(points, centers):
    gaps = points[:, None] - centers[None]
    return np.einsum("nkd,nkd->nk", gaps, gaps).argmin(axis=1)
