"""q1_13: six derivations as they are found in print, as named lines that can be evaluated. Some are right.

In each derivation all lines take the same arguments and claim to be the same thing. The first line says what is
asked for and is true; a false line is one that departs from it. `draw` makes arguments at which a slip can be seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Line = Callable[..., Tensor]
FAR = 1e9  # stands for "without end"


def _second_moment(mu: Tensor, sigma: float) -> Tensor:
    """E[q q^T] = mu mu^T + sigma^2 I: [d] -> [d, d]."""
    return torch.outer(mu, mu) + sigma**2 * torch.eye(len(mu), dtype=mu.dtype, device=mu.device)


# "variance": Var(q . k) for independent q, k ~ N(mu, sigma^2 I); arguments mu [d], sigma


def variance_moments(mu: Tensor, sigma: float) -> Tensor:
    """Tr(E[q q^T] E[k k^T]) - (mu . mu)^2."""
    return torch.trace(_second_moment(mu, sigma) @ _second_moment(mu, sigma)) - (mu @ mu) ** 2


def variance_expanded(mu: Tensor, sigma: float) -> Tensor:
    """Tr(mu mu^T mu mu^T) + 2 sigma^2 Tr(mu mu^T) + sigma^4 Tr(I) - (mu . mu)^2."""
    M = torch.outer(mu, mu)  # [d, d]
    eye = torch.eye(len(mu), dtype=mu.dtype, device=mu.device)  # [d, d]
    return torch.trace(M @ M) + 2 * sigma**2 * torch.trace(M) + sigma**4 * torch.trace(eye) - (mu @ mu) ** 2


def variance_traces(mu: Tensor, sigma: float) -> Tensor:
    """(mu . mu)^2 + 2 sigma^2 mu . mu + d sigma^4 - (mu . mu)^2."""
    return (mu @ mu) ** 2 + 2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4 - (mu @ mu) ** 2


def variance_closed(mu: Tensor, sigma: float) -> Tensor:
    """2 d sigma^2 mu . mu + d sigma^4."""
    return 2 * len(mu) * sigma**2 * (mu @ mu) + len(mu) * sigma**4


# "one_query": how far apart one query's scores lie, on average over queries; arguments mu [d], sigma


def one_query_given(mu: Tensor, sigma: float) -> Tensor:
    """E[Var(q . k | q)], which is Var(q . k) - Var(E[q . k | q]), by the law of total variance."""
    return variance_moments(mu, sigma) - sigma**2 * (mu @ mu)


def one_query_fixed(mu: Tensor, sigma: float) -> Tensor:
    """With q held fixed only k varies: the mean over q of sigma^2 q . q."""
    return sigma**2 * torch.trace(_second_moment(mu, sigma))


def one_query_closed(mu: Tensor, sigma: float) -> Tensor:
    """sigma^2 (mu . mu + d sigma^2)."""
    return sigma**2 * (mu @ mu + len(mu) * sigma**2)


# "copy": attention whose temperature goes to 0; arguments s [m] with one largest score, V [m, t]


def copy_sharp(s: Tensor, V: Tensor) -> Tensor:
    """The limit of softmax(beta s) V as beta grows without end."""
    return torch.softmax(FAR * (s - s.max()), 0) @ V


def copy_selected(s: Tensor, V: Tensor) -> Tensor:
    """The weights tend to a one-hot vector: 1 at the largest score, 0 elsewhere."""
    return (s == s.max()).to(V) @ V


def copy_pooled(s: Tensor, V: Tensor) -> Tensor:
    """So the largest wins: a max pooling over the values."""
    return V.amax(0)


# "longer_key": key j is stretched without end; arguments q [D], K [S, D], V [S, Dv], j


def longer_key_stretched(q: Tensor, K: Tensor, V: Tensor, j: int) -> Tensor:
    """The limit of the output softmax(K q) V as k_j is stretched without end."""
    scores = K @ q  # [S]
    far = torch.where(torch.arange(len(K), device=K.device) == j, FAR * scores, scores)
    return torch.softmax(far, 0) @ V


def longer_key_ratio(q: Tensor, K: Tensor, V: Tensor, j: int) -> Tensor:
    """(r v_j + sum of e^(s_i) v_i) / (r + sum of e^(s_i)) over i != j, where r = e^(a s_j) for an endless a."""
    scores, others = K @ q, [i for i in range(len(K)) if i != j]
    rest = scores[others]  # [S - 1]
    top = torch.maximum(FAR * scores[j], rest.max())  # taken out of both sums, so that nothing overflows
    r, e = torch.exp(FAR * scores[j] - top), torch.exp(rest - top)
    return (r * V[j] + e @ V[others]) / (r + e.sum())


def longer_key_wins(q: Tensor, K: Tensor, V: Tensor, j: int) -> Tensor:
    """r outgrows every other term: v_j."""
    return V[j].clone()


# "shuffled_tokens": self-attention of shuffled tokens; arguments X [N, D], P [N, N], Wq, Wk, Wv [D, D]


def shuffled_tokens_scores(X: Tensor, P: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor) -> Tensor:
    """softmax(P Q (P K)^T / sqrt(D)) P V, with Q = X Wq, K = X Wk, V = X Wv."""
    scores = (P @ X @ Wq) @ (P @ X @ Wk).T / math.sqrt(X.shape[-1])
    return scores.softmax(-1) @ (P @ X @ Wv)


def shuffled_tokens_cancelled(X: Tensor, P: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(D)) P V, since P^T P = I."""
    return ((X @ Wq) @ (X @ Wk).T / math.sqrt(X.shape[-1])).softmax(-1) @ (P @ X @ Wv)


def shuffled_tokens_output(X: Tensor, P: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor) -> Tensor:
    """P softmax(Q K^T / sqrt(D)) V."""
    return P @ (((X @ Wq) @ (X @ Wk).T / math.sqrt(X.shape[-1])).softmax(-1) @ (X @ Wv))


# "sensitive": how much the largest weight y_m reacts to its own score; argument z [n] with one largest score


def sensitive_quotient(z: Tensor) -> Tensor:
    """d y_m / d z_m by the quotient rule: e^(z_m) (sum of e^(z_i) over i != m) / (sum of all e^(z_i))^2."""
    e = torch.exp(z - z.max())
    return e.max() * (e.sum() - e.max()) / e.sum() ** 2


def sensitive_product(z: Tensor) -> Tensor:
    """y_m (1 - y_m)."""
    largest = z.softmax(0).max()
    return largest * (1 - largest)


def sensitive_saturated(z: Tensor) -> Tensor:
    """The other weights vanish and drop out: y_m, so the reaction is the stronger, the larger the weight."""
    return z.softmax(0).max()


DERIVATIONS: dict[str, dict[str, Line]] = {
    "variance": {"moments": variance_moments, "expanded": variance_expanded, "traces": variance_traces,
                 "closed": variance_closed},
    "one_query": {"given": one_query_given, "fixed": one_query_fixed, "closed": one_query_closed},
    "copy": {"sharp": copy_sharp, "selected": copy_selected, "pooled": copy_pooled},
    "longer_key": {"stretched": longer_key_stretched, "ratio": longer_key_ratio, "wins": longer_key_wins},
    "shuffled_tokens": {"scores": shuffled_tokens_scores, "cancelled": shuffled_tokens_cancelled,
                        "output": shuffled_tokens_output},
    "sensitive": {"quotient": sensitive_quotient, "product": sensitive_product, "saturated": sensitive_saturated},
}


def draw(name: str, rng: torch.Generator) -> tuple[Any, ...]:
    """Random arguments for the lines of one derivation, in float64 and of a form that is special in no way."""
    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    def size(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=rng))

    if name in ("variance", "one_query"):
        mu = normal(size(3, 6))
        return mu + torch.where(mu < 0, -0.3, 0.3), 0.5 + torch.rand(1, generator=rng).item()
    if name == "copy":
        m = size(4, 7)
        return torch.randperm(m, generator=rng).double() / 2 + 0.1 * torch.rand(1, generator=rng).item(), normal(m, 5)
    if name == "longer_key":
        S = size(3, 6)
        q, K, V, j = normal(3), normal(S, 3), normal(S, 2), size(0, S - 1)
        sign = 1.0 if torch.rand(1, generator=rng) < 0.5 else -1.0
        K[j] += (sign * (0.5 + torch.rand(1, generator=rng, dtype=torch.float64)) - K[j] @ q) * q / (q @ q)
        return q, K, V, j  # q . k_j lies well away from 0, on either side
    if name == "shuffled_tokens":
        N, D = size(4, 6), 3
        order = torch.arange(N).roll(size(1, N - 1))
        return normal(N, D), torch.eye(N, dtype=torch.float64)[order], normal(D, D), normal(D, D), normal(D, D)
    if name == "sensitive":
        return (normal(size(3, 6)),)
    raise ValueError(f"no derivation is called {name!r}: there are {', '.join(DERIVATIONS)}")


def departs(name: str, line: str, arguments: tuple[Any, ...]) -> float:
    """How far a line lies from the first one at these arguments: the largest difference of an entry."""
    lines = DERIVATIONS[name]
    first = next(iter(lines.values()))
    return float((lines[line](*arguments) - first(*arguments)).abs().max())


def largest_gaps(name: str, points: Sequence[tuple[Any, ...]]) -> dict[str, float]:
    """For each line how far it departs from the first one, at the worst of the points."""
    lines = DERIVATIONS[name]
    first, gaps = next(iter(lines.values())), dict.fromkeys(lines, 0.0)
    for point in points:
        right = first(*point)
        for line, value in lines.items():
            gaps[line] = max(gaps[line], 0.0 if value is first else float((value(*point) - right).abs().max()))
    return gaps
