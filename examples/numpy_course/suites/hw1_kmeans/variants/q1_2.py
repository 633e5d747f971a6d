# %% a-loop
"""Centre by centre, on a copy."""
def update(points, labels, centers):
    new = centers.copy()
    for j in range(len(centers)):
        mine = points[labels == j]
        if len(mine):
            new[j] = mine.mean(axis=0)
    return new


# %% sums-by-add-at
"""Sums by `np.add.at`, counts by `np.bincount`."""
def update(points, labels, centers):
    sums, counts = np.zeros_like(centers), np.bincount(labels, minlength=len(centers))
    np.add.at(sums, labels, points)
    filled = counts > 0
    sums[filled] /= counts[filled, None]
    sums[~filled] = centers[~filled]
    return sums


# %% a-dictionary
"""Plain Python: sums and counts in a dictionary."""
def update(points, labels, centers):
    groups = {}
    for label, point in zip(labels.tolist(), points, strict=True):
        groups.setdefault(label, []).append(point)
    return np.stack([np.mean(groups[j], axis=0) if j in groups else centers[j] for j in range(len(centers))])
