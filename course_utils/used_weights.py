"""Are the weights that a model returns those with which it averages?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {"mul", "mul_", "bmm", "mm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "addcmul"}


def weights_used(model: Callable[..., tuple[Tensor, Tensor]], /, *args: Any, **kwargs: Any) -> bool:
    """Whether every row of the returned weights, [B, T, S], goes into some product while the model runs.

    A row may be there number by number, or as a row of numbers in proportion to it: one can also divide after the
    sum. Where the products cannot be watched the answer is yes.
    """
    seen = _Products()
    try:
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), seen:
            _, weights = model(*args, **kwargs)
    except Exception:
        return True
    close = 1e-9 if weights.dtype == torch.float64 else 1e-6
    rows = weights.double().flatten(0, -2)  # [B * T, S]
    return bool((_by_number(rows, seen.factors, close) | _by_proportion(rows, seen.factors, close)).all())


def _by_number(rows: Tensor, factors: list[Tensor], close: float) -> Tensor:
    """For each row, whether all its numbers are among those of the factors."""
    known = torch.cat([factor.flatten() for factor in factors]).sort().values if factors else rows.new_zeros(1)
    right = torch.searchsorted(known, rows).clamp(max=len(known) - 1)
    gap = torch.minimum((known[right] - rows).abs(), (known[(right - 1).clamp(min=0)] - rows).abs())
    return (gap <= close).all(-1)


def _by_proportion(rows: Tensor, factors: list[Tensor], close: float) -> Tensor:
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


class _Products(TorchDispatchMode):
    """Keeps what goes into every product, in float64."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __init__(self) -> None:
        super().__init__()
        self.factors: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in PRODUCTS:
            self.factors += [x.detach().double() for x in args if isinstance(x, Tensor) and x.is_floating_point()]
        return func(*args, **(kwargs or {}))
