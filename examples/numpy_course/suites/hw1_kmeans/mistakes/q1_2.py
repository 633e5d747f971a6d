# %% empty-is-nan
"""A centre without points becomes NaN: zero divided by zero. Such a centre stays where it is."""
def update(points, labels, centers):
    with np.errstate(all="ignore"):
        mine = labels == np.arange(len(centers))[:, None]
        return mine @ points / mine.sum(1, keepdims=True)


# %% empty-is-zero
"""A centre without points jumps to the origin. It should stay where it is."""
def update(points, labels, centers):
    new = np.zeros_like(centers)
    for j in range(len(centers)):
        if (labels == j).any():
            new[j] = points[labels == j].mean(0)
    return new


# %% divided-by-all
"""You divide the sum of a cluster by the number of all points: divide by the number of its own."""
def update(points, labels, centers):
    mine = labels == np.arange(len(centers))[:, None]
    return np.where(mine.any(1, keepdims=True), mine @ points / len(points), centers)


# %% in-place
"""You write into the centres that you were given. Whoever called still needs the old ones: work on a copy."""
def update(points, labels, centers):
    for j in range(len(centers)):
        if (labels == j).any():
            centers[j] = points[labels == j].mean(0)
    return centers


# %% only-labels-that-occur
"""You make one centre for each label that occurs. A centre without points is then missing, and all behind it move
up."""
def update(points, labels, centers):
    return np.array([points[labels == j].mean(0) for j in np.unique(labels)])


# %% mean-of-everything
"""The mean runs over both axes and gives one number, which fills a whole row. Take it over the points only."""
def update(points, labels, centers):
    new = centers.copy()
    for j in range(len(centers)):
        if (labels == j).any():
            new[j] = points[labels == j].mean()
    return new
