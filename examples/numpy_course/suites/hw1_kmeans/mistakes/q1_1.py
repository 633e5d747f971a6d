# %% farthest
"""Your points go to the centre that is farthest away: you want the smallest distance."""
def assign(points, centers):
    return ((points[:, None] - centers) ** 2).sum(-1).argmax(-1)


# %% over-points
"""Your minimum runs over the points: you found the nearest point of each centre, not the nearest centre of each
point. Look at the axis of `argmin`."""
def assign(points, centers):
    return ((points[:, None] - centers) ** 2).sum(-1).argmin(0)


# %% absolute-differences
"""You sum absolute differences: that is the distance along the streets of a city. Square the differences before you
sum."""
def assign(points, centers):
    return np.abs(points[:, None] - centers).sum(-1).argmin(-1)


# %% largest-product
"""You take the centre with the largest dot product. A long centre then wins everywhere: expand the square, and its
own length stays in the formula."""
def assign(points, centers):
    return (points @ centers.T).argmax(-1)


# %% differences-not-squared
"""You sum the differences without squaring them, so that one that is negative makes up for one that is positive."""
def assign(points, centers):
    return (points[:, None] - centers).sum(-1).argmin(-1)
