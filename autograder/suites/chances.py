"""Bounds on counts that chance makes: a right answer passes one but for a chance of 1e-12.

A submission meets about two hundred of them, so one right answer in a class of 1,000 fails with a chance below 1e-6.
"""

from __future__ import annotations

import math

RISK = 1e-12


def spread(n: int, p: float, risk: float = RISK) -> float:
    """How far the count of successes in n independent trials may be from n p, by Bernstein's inequality."""
    log = math.log(2 / risk)
    return log / 3 + math.sqrt(log**2 / 9 + 2 * n * p * (1 - p) * log)


def likely(count: float, n: int, p: float, risk: float = RISK) -> bool:
    """Whether such a count is to be expected of n independent trials with chance p."""
    return abs(count - n * p) <= spread(n, p, risk)
