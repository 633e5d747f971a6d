# %% place-by-place
"""Sums over the places in Python floats, every place (m^2 + s^2)^2 - m^4."""
def dot_mean(mu, sigma):
    return sum(m * m for m in mu.tolist())


def dot_variance(mu, sigma):
    return sum((m**2 + sigma**2) ** 2 - m**4 for m in mu.tolist())


def unit_scale(d):
    return d**0.5


def variance_lines(mu, sigma):
    means = mu.tolist()
    return [
        sum((m**2 + sigma**2) ** 2 - m**4 for m in means),
        sum(m**4 + 2 * m**2 * sigma**2 + sigma**4 - m**4 for m in means),
        sum(2 * m**2 * sigma**2 + sigma**4 for m in means),
        2 * sigma**2 * sum(m**2 for m in means) + len(means) * sigma**4,
    ]


# %% trace-of-second-moments
"""Tr((mu mu^T + s^2 I)^2) - (mu . mu)^2, as 0-dim tensors; the scale from the variance itself."""
def _second_moment(mu, sigma):
    return mu[:, None] * mu[None, :] + sigma**2 * torch.eye(mu.numel(), dtype=mu.dtype, device=mu.device)


def dot_mean(mu, sigma):
    return torch.trace(torch.outer(mu, mu))


def dot_variance(mu, sigma):
    M = _second_moment(mu, sigma)
    return torch.trace(M @ M) - dot_mean(mu, sigma) ** 2


def unit_scale(d):
    return dot_variance(torch.zeros(d, dtype=torch.float64), 1.0).sqrt()


def variance_lines(mu, sigma):
    M, m = _second_moment(mu, sigma), torch.dot(mu, mu)
    outer, eye = torch.outer(mu, mu), torch.eye(mu.numel(), dtype=mu.dtype, device=mu.device)
    return [
        torch.trace(M @ M) - m**2,
        torch.trace(outer @ outer + 2 * sigma**2 * outer + sigma**4 * eye) - m**2,
        2 * sigma**2 * torch.trace(outer) + sigma**4 * torch.trace(eye),
    ]


# %% law-of-total-variance
"""E[Var(q.k | q)] + Var(E[q.k | q]); lines as a mixture of numbers and 0-dim tensors."""
def dot_mean(mu, sigma):
    return torch.linalg.vecdot(mu, mu)


def dot_variance(mu, sigma):
    within = sigma**2 * (mu.square().sum() + mu.shape[0] * sigma**2)
    between = sigma**2 * mu.square().sum()
    return within + between


def unit_scale(d):
    return np.sqrt(d)


def variance_lines(mu, sigma):
    mean_q_squared = (mu**2 + sigma**2).sum()  # E[q . q]
    variance_of_mu_q = (mu * sigma).square().sum()  # Var(mu . q)
    return [
        sigma**2 * mean_q_squared + variance_of_mu_q,
        sigma**2 * (mu @ mu + len(mu) * sigma**2) + sigma**2 * (mu @ mu),
        float(2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4),
    ]


# %% numpy-double-sum
"""The full double sum over pairs of places, in numpy."""
def dot_mean(mu, sigma):
    m = mu.detach().cpu().numpy()
    return float(np.dot(m, m))


def dot_variance(mu, sigma):
    m = mu.detach().cpu().numpy().astype(np.float64)
    pairs = np.outer(m, m) + sigma**2 * np.eye(len(m))  # E[q_i q_j] = E[k_i k_j]
    return float((pairs**2).sum() - (m @ m) ** 2)


def unit_scale(d):
    return math.exp(0.5 * math.log(d))


def variance_lines(mu, sigma):
    m = mu.detach().cpu().numpy().astype(np.float64)
    d, s2 = len(m), sigma**2
    same = ((m**2 + s2) ** 2).sum()
    different = sum(m[i] ** 2 * m[j] ** 2 for i in range(d) for j in range(d) if i != j)
    return [
        same + different - (m @ m) ** 2,
        same - (m**4).sum(),
        (2 * s2 * m**2 + s2**2).sum(),
        2 * s2 * (m @ m) + d * s2**2,
        dot_variance(mu, sigma),
    ]


# %% sympy
"""The variance of one product as a symbolic expression, expanded by sympy and summed over the places."""
import sympy


def _one_place():
    m, s = sympy.symbols("m s", real=True)
    return m, s, (m**2 + s**2) ** 2 - m**4


def _sum_over(expression, m, s, mu, sigma):
    f = sympy.lambdify((m, s), expression, "math")
    return math.fsum(f(x, float(sigma)) for x in mu.tolist())


def dot_mean(mu, sigma):
    return math.fsum(x * x for x in mu.tolist())


def dot_variance(mu, sigma):
    m, s, one = _one_place()
    return _sum_over(sympy.expand(one), m, s, mu, sigma)


def unit_scale(d):
    return float(sympy.sqrt(d))


def variance_lines(mu, sigma):
    m, s, one = _one_place()
    return [_sum_over(e, m, s, mu, sigma) for e in (one, sympy.expand(one), sympy.factor(one))]
