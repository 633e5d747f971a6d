# %% tensors-everywhere
"""0-dim tensors in place of numbers, `torch.linalg.norm`, five lines."""
def layer_norm_radius(gamma, d):
    return torch.as_tensor(gamma, dtype=torch.float64).abs() * torch.tensor(float(d), dtype=torch.float64).sqrt()


def radius_lines(x, gamma, beta):
    d = x.numel()
    mu = x.mean()
    sigma = ((x - mu) ** 2).mean().sqrt()
    y = (x - mu) / sigma * gamma + beta
    return [
        torch.linalg.norm(y - beta),
        torch.linalg.norm((x - mu) / sigma * gamma),
        torch.linalg.norm(x - mu) / sigma * abs(gamma),
        torch.sqrt(d * sigma**2) / sigma * abs(gamma),
        torch.sqrt(torch.as_tensor(d * gamma**2, dtype=x.dtype)),
    ]


# %% python-floats
"""Plain Python numbers and loops; the absolute value as a root of a square."""
def layer_norm_radius(gamma, d):
    return math.sqrt(float(gamma) ** 2 * d)


def radius_lines(x, gamma, beta):
    values, gamma, beta = x.tolist(), float(gamma), float(beta)
    d = len(values)
    mu = math.fsum(values) / d
    var = math.fsum((v - mu) ** 2 for v in values) / d
    y = [gamma * (v - mu) / math.sqrt(var) + beta for v in values]
    return [
        math.dist(y, [beta] * d),
        math.sqrt(math.fsum(gamma**2 * (v - mu) ** 2 / var for v in values)),
        math.sqrt(gamma**2 / var * math.fsum((v - mu) ** 2 for v in values)),
        math.sqrt(gamma**2 / var * d * var),
        layer_norm_radius(gamma, d),
    ]


# %% numpy
"""NumPy in float64; lines are its numbers turned into floats."""
import numpy as np


def layer_norm_radius(gamma, d):
    return float(np.abs(float(gamma)) * np.sqrt(d))


def radius_lines(x, gamma, beta):
    a, gamma, beta = x.double().numpy(), float(gamma), float(beta)
    y = gamma * (a - a.mean()) / a.std() + beta
    return [
        float(np.linalg.norm(y - beta)),
        float(np.sqrt(((y - beta) ** 2).sum())),
        float(abs(gamma) * np.sqrt(((a - a.mean()) ** 2).sum()) / a.std()),
        float(abs(gamma) * np.sqrt(len(a) * a.var()) / a.std()),
        float(abs(gamma) * np.sqrt(len(a))),
    ]


# %% own-layer-norm
"""q3_1's layer norm with eps = 0 in the first line; three lines in all."""
def layer_norm_radius(gamma, d):
    return max(gamma, -gamma) * d**0.5


def radius_lines(x, gamma, beta):
    d = x.shape[0]
    y = layer_norm(x, torch.full_like(x, float(gamma)), torch.full_like(x, float(beta)), eps=0.0)
    xhat = layer_norm(x, torch.ones_like(x), torch.zeros_like(x), eps=0.0)
    return [(y - beta).norm(), abs(gamma) * (xhat @ xhat).sqrt(), layer_norm_radius(gamma, d)]


# %% squares-inside-the-root
"""Every line a root of a sum; generator, `hypot` and a mixture of floats and tensors."""
def layer_norm_radius(gamma, d):
    return math.hypot(*[float(gamma)] * int(d))


def radius_lines(x, gamma, beta):
    x = x.double()
    gamma, beta = float(gamma), float(beta)
    d = len(x)
    c = x - x.sum() / d
    v = (c @ c) / d
    y = gamma * c * v.rsqrt() + beta
    lines = [((y - beta) ** 2).sum().sqrt()]
    lines.append((gamma**2 * (c @ c) / v).sqrt())
    lines.append((gamma**2 * (d * v) / v).sqrt().item())
    lines.append(math.hypot(*[gamma] * d))
    return lines
