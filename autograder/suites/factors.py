"""Are the weights that a model returns those with which it averages?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def are_factors(weights: Tensor, factors: Sequence[Tensor]) -> bool:
    """Whether every row of the weights, [B, T, S], is in what went into products.

    A row may be there number by number, or as a row of numbers in proportion to it: one can also divide after the sum.
    """
    close = 1e-9 if weights.dtype == torch.float64 else 1e-6
    rows = weights.double().flatten(0, -2)  # [B * T, S]
    return bool((_by_number(rows, factors, close) | _by_proportion(rows, factors, close)).all())


def _by_number(rows: Tensor, factors: Sequence[Tensor], close: float) -> Tensor:
    """For each row, whether all its numbers are among those of the factors."""
    known = torch.cat([factor.flatten() for factor in factors]).sort().values if factors else rows.new_zeros(1)
    right = torch.searchsorted(known, rows).clamp(max=len(known) - 1)
    gap = torch.minimum((known[right] - rows).abs(), (known[(right - 1).clamp(min=0)] - rows).abs())
    return (gap <= close).all(-1)


def _by_proportion(rows: Tensor, factors: Sequence[Tensor], close: float) -> Tensor:
    """For each row, whether some factor has a row that is a multiple of it, along any axis."""
    found = torch.zeros(len(rows), dtype=torch.bool)
    for factor in factors:
        for axis, size in enumerate(factor.shape):
            if size == rows.shape[-1]:
                lines = factor.movedim(axis, -1).reshape(-1, size)
                lines = lines[(lines >= 0).all(-1) & (lines.sum(-1) > 0)]
                if len(lines):
                    lines = lines / lines.sum(-1, keepdim=True)
                    found |= (rows[:, None] - lines).abs().amax(-1).amin(-1) <= close
    return found
