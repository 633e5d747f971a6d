# %% place-by-place
"""Sums over the places in Python floats, every place (m^2 + s^2)^2 - m^4."""
def dot_mean(mu, sigma):
    return sum(m * m for m in mu.tolist())


def dot_variance(mu, sigma):
    return sum((m**2 + sigma**2) ** 2 - m**4 for m in mu.tolist())


def unit_scale(d):
    return d**0.5


def variance_from_moments(q1, q2, k1, k2):
    return sum(b * e - (a * c) ** 2 for a, b, c, e in zip(*(x.tolist() for x in (q1, q2, k1, k2)), strict=True))


def variance_from_means(mq, vq, mk, vk):
    letters = zip(mq.tolist(), vq.tolist(), mk.tolist(), vk.tolist(), strict=True)
    return sum((v + m**2) * (w + n**2) - m**2 * n**2 for m, v, n, w in letters)


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


def variance_from_means(mq, vq, mk, vk):
    M, N = (torch.outer(m, m) + torch.diag(v) for m, v in ((mq, vq), (mk, vk)))  # E[q q^T], E[k k^T]
    return torch.trace(M @ N) - (mq @ mk) ** 2


def variance_from_moments(q1, q2, k1, k2):
    return variance_from_means(q1, q2 - q1**2, k1, k2 - k1**2)


# %% law-of-total-variance
"""E[Var(q.k | q)] + Var(E[q.k | q]); numbers and 0-dim tensors mixed."""
def dot_mean(mu, sigma):
    return torch.linalg.vecdot(mu, mu)


def dot_variance(mu, sigma):
    within = sigma**2 * (mu.square().sum() + mu.shape[0] * sigma**2)
    between = sigma**2 * mu.square().sum()
    return within + between


def unit_scale(d):
    return np.sqrt(d)


def variance_from_means(mq, vq, mk, vk):
    within = vk @ (vq + mq.square())  # E[Var(q . k | q)]
    between = vq @ mk.square()  # Var(E[q . k | q])
    return within + between


def variance_from_moments(q1, q2, k1, k2):
    return float((k2 - k1**2) @ q2 + (q2 - q1**2) @ k1**2)


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


def variance_from_moments(q1, q2, k1, k2):
    q1, q2, k1, k2 = (x.detach().cpu().numpy().astype(np.float64) for x in (q1, q2, k1, k2))
    pairs_q, pairs_k = np.outer(q1, q1), np.outer(k1, k1)  # E[q_i q_j], E[k_i k_j] for i != j
    np.fill_diagonal(pairs_q, q2)
    np.fill_diagonal(pairs_k, k2)
    return float((pairs_q * pairs_k).sum() - (q1 @ k1) ** 2)


def variance_from_means(mq, vq, mk, vk):
    return variance_from_moments(mq, vq + mq**2, mk, vk + mk**2)


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


def variance_from_means(mq, vq, mk, vk):
    m, v, n, w = sympy.symbols("m v n w", real=True)
    one = sympy.expand((v + m**2) * (w + n**2) - m**2 * n**2)
    f = sympy.lambdify((m, v, n, w), one, "math")
    return math.fsum(f(*letters) for letters in zip(*(x.tolist() for x in (mq, vq, mk, vk)), strict=True))


def variance_from_moments(q1, q2, k1, k2):
    return math.fsum((q2 * k2 - q1**2 * k1**2).tolist())
