# %% no-half
"""The exponent is twice as large as it should be."""
def make_kernel(width):
    return lambda x, y: torch.exp(-(x - y).square().sum(-1) / width**2)

# %% not-squared
"""The distance is not squared."""
def make_kernel(width):
    return lambda x, y: torch.exp(-(x - y).norm(dim=-1) / (2 * width**2))

# %% width-not-squared
"""The width is not squared."""
def make_kernel(width):
    return lambda x, y: torch.exp(-(x - y).square().sum(-1) / (2 * width))

# %% product
"""That is the exponential of a product, not of a distance."""
def make_kernel(width):
    return lambda x, y: torch.exp((x * y).sum(-1) / (2 * width**2))
