"""How work grows with size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def growth_exponent(sizes: Sequence[float], work: Iterable[float]) -> float:
    """The slope of log(work) over log(size), by least squares: 1 for linear growth, 2 for quadratic."""
    x, y = [math.log(n) for n in sizes], [math.log(max(w, 1)) for w in work]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    pairs = zip(x, y, strict=True)
    return sum((a - mean_x) * (b - mean_y) for a, b in pairs) / sum((a - mean_x) ** 2 for a in x)
