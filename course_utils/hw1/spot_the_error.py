"""q1_13: a derivation of Var(q . k) that looks published, line by line. One line is the first false one.

q and k are independent, both N(mu, sigma^2 I), mu: [d]. Every line claims to be the variance of q . k.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Line = Callable[[Tensor, float], Tensor]


def _second_moment(mu: Tensor, sigma: float | Tensor) -> Tensor:
    """E[q q^T] = mu mu^T + sigma^2 I: [d] -> [d, d]."""
    return torch.outer(mu, mu) + sigma**2 * torch.eye(len(mu), dtype=mu.dtype, device=mu.device)


def line_0(mu: Tensor, sigma: float | Tensor) -> Tensor:
    """Tr(E[q q^T] E[k k^T]) - (mu . mu)^2."""
    return torch.trace(_second_moment(mu, sigma) @ _second_moment(mu, sigma)) - (mu @ mu) ** 2


def line_1(mu: Tensor, sigma: float | Tensor) -> Tensor:
    """Tr(mu mu^T mu mu^T) + 2 sigma^2 Tr(mu mu^T) + sigma^4 Tr(I) - (mu . mu)^2."""
    M = torch.outer(mu, mu)  # [d, d]
    eye = torch.eye(len(mu), dtype=mu.dtype, device=mu.device)  # [d, d]
    return torch.trace(M @ M) + 2 * sigma**2 * torch.trace(M) + sigma**4 * torch.trace(eye) - (mu @ mu) ** 2


def line_2(mu: Tensor, sigma: float | Tensor) -> Tensor:
    """(mu . mu)^2 + 2 sigma^2 mu . mu + d sigma^4 - (mu . mu)^2."""
    return (mu @ mu) ** 2 + 2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4 - (mu @ mu) ** 2


def line_3(mu: Tensor, sigma: float | Tensor) -> Tensor:
    """2 d sigma^2 mu . mu + d sigma^4."""
    return 2 * len(mu) * sigma**2 * (mu @ mu) + len(mu) * sigma**4


DERIVATION: list[Line] = [line_0, line_1, line_2, line_3]
