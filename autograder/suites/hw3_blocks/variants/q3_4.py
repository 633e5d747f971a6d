# %% tensors-everywhere
"""0-dim tensors in place of numbers, `torch.linalg.norm`."""
def layer_norm_radius(gamma, d):
    return torch.as_tensor(gamma, dtype=torch.float64).abs() * torch.tensor(float(d), dtype=torch.float64).sqrt()


def radius_from_entries(x, mean, sigma, gamma):
    return torch.linalg.norm((x - mean) / sigma * gamma)


def radius_from_sum(total, sigma, gamma):
    total, sigma, gamma = (torch.as_tensor(v, dtype=torch.float64) for v in (total, sigma, gamma))
    return (gamma**2 * total / sigma**2).sqrt()


# %% python-floats
"""Plain Python numbers and loops; the absolute value as a root of a square."""
def layer_norm_radius(gamma, d):
    return math.sqrt(float(gamma) ** 2 * d)


def radius_from_entries(x, mean, sigma, gamma):
    mean, sigma, gamma = float(mean), float(sigma), float(gamma)
    return math.sqrt(math.fsum((gamma * (v - mean) / sigma) ** 2 for v in x.tolist()))


def radius_from_sum(total, sigma, gamma):
    return math.sqrt(float(gamma) ** 2 * float(total)) / float(sigma)


# %% numpy
"""NumPy in float64."""
import numpy as np


def layer_norm_radius(gamma, d):
    return float(np.abs(float(gamma)) * np.sqrt(d))


def radius_from_entries(x, mean, sigma, gamma):
    return float(np.linalg.norm(float(gamma) * (x.double().numpy() - float(mean)) / float(sigma)))


def radius_from_sum(total, sigma, gamma):
    return float(np.sqrt(float(total)) * np.abs(float(gamma)) / float(sigma))


# %% lines-by-the-next
"""Each line converts its letters and calls the next: values decide."""
def layer_norm_radius(gamma, d):
    return max(gamma, -gamma) * d**0.5


def radius_from_sum(total, sigma, gamma):
    return layer_norm_radius(gamma, total / sigma**2)


def radius_from_entries(x, mean, sigma, gamma):
    return radius_from_sum(((x - mean) ** 2).sum(), sigma, gamma)


# %% hypotenuse
"""`hypot` and `dist`."""
def layer_norm_radius(gamma, d):
    return math.hypot(*[float(gamma)] * int(d))


def radius_from_entries(x, mean, sigma, gamma):
    return abs(gamma / sigma) * math.dist(x.tolist(), [float(mean)] * len(x))


def radius_from_sum(total, sigma, gamma):
    return abs(gamma / sigma) * total**0.5
