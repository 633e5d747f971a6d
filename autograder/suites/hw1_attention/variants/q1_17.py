# %% multiplied-out
"""2 - 2 a."""
def saturation_bound(largest):
    return 2.0 - 2.0 * largest


# %% numpy-float
"""A numpy float is a Python float."""
def saturation_bound(largest):
    return np.float64(2.0) * (1.0 - largest)


# %% through-a-tensor
"""Computed in torch, handed back as a float."""
def saturation_bound(largest):
    left = 1 - torch.as_tensor(largest, dtype=torch.float64)
    return (left + left).item()


# %% exact-fractions
"""In exact fractions."""
from fractions import Fraction


def saturation_bound(largest):
    return float(2 * (1 - Fraction(largest)))
