# %% answer-of-q1-8
"""The repair is q1_8's dot_variance itself."""
def first_false_line():
    return 3, dot_variance


# %% sum-over-places
"""A named inner function that adds up the places in Python floats."""
def first_false_line():
    def repaired(mu, sigma):
        return sum(2 * sigma**2 * m**2 + sigma**4 for m in mu.tolist())

    return 3, repaired


# %% trace-form
"""The unsimplified trace, returned as a 0-dim tensor."""
def _by_trace(mu, sigma):
    M = torch.outer(mu, mu) + sigma**2 * torch.eye(len(mu), dtype=mu.dtype, device=mu.device)
    return torch.trace(M @ M) - torch.dot(mu, mu) ** 2


def first_false_line():
    index = len(["moments", "trace", "expanded"])
    return index, _by_trace


# %% callable-object
"""An object with __call__, numpy inside."""
class Repaired:
    def __call__(self, mu, sigma):
        m = mu.detach().cpu().numpy().astype(np.float64)
        return float(2 * sigma**2 * np.sum(m**2) + m.size * sigma**4)


def first_false_line():
    return 3, Repaired()


# %% partial-of-general-formula
"""A functools.partial of the variance for two different means and deviations."""
from functools import partial


def _variance(mu_k, mu, sigma):
    mu_k = mu if mu_k is None else mu_k
    return sigma**2 * (mu @ mu) + sigma**2 * (mu_k @ mu_k) + mu.numel() * sigma**2 * sigma**2


def first_false_line():
    return (3, partial(_variance, None))
