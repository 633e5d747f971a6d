"""Derivations checked by number: lines that must be equal, and expectations to hold the first line against.

Lines count from 0, like the list that holds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.checking import Wrong, same, tensor

MAX_POINTS = 2_000_000
RTOL, ATOL = 1e-6, 1e-9
RTOL_COARSE, ATOL_COARSE = 1e-3, 1e-5  # where a line is float32 or coarser


@dataclass(frozen=True)
class Report:
    """What a comparison of lines found: all agree, or the index of the first broken one and a sentence."""

    ok: bool
    broken: int | None = None
    message: str = "all lines agree"

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Estimate:
    """A Monte Carlo mean; the true one lies within `half_width` of it with the stated confidence."""

    mean: float
    half_width: float
    n: int
    confidence: float

    def contains(self, value: float) -> bool:
        """Whether the value lies inside the confidence interval."""
        return abs(float(value) - self.mean) <= self.half_width

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.2g} ({self.confidence:.4%} confidence, {self.n} samples)"


def compare_lines(lines: Sequence[Any], names: Sequence[str] | None = None, rtol: float | None = None) -> Report:
    """Compare every line with the one before it and name the first that breaks, with both values.

    A line is a number (Python, numpy, SymPy) or a tensor; all have one shape.
    """
    names = names or [f"line {i}" for i in range(len(lines))]
    previous: Tensor | None = None
    for i, line in enumerate(lines):
        value = _value(line)
        if value is None:
            return Report(False, i, f"{names[i]} is {_kind(line)}, expected a number or a tensor")
        if value.isnan().any():
            return Report(False, i, f"{names[i]} is the first that breaks: it has NaN")
        if previous is not None:
            difference = _difference(previous, value, names[i - 1], names[i], _rtol(rtol, lines[i - 1], line))
            if difference:
                return Report(False, i, f"{names[i]} is the first that breaks: {difference}")
        previous = value
    return Report(True)


def assert_lines(lines: Any, definition: Any, what: str, at_least: int = 3, rtol: float | None = None) -> None:
    """Raise `Wrong` unless there are enough lines, the first agrees with the definition, and all agree.

    The definition is a number, a tensor, or the `Estimate` of a Monte Carlo run.
    """
    if not isinstance(lines, (list, tuple)):
        raise Wrong(f"{what}: expected a list of lines, got {_kind(lines)}")
    if len(lines) < at_least:
        count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        raise Wrong(f"{what}: {count}, expected at least {at_least}")
    if isinstance(definition, Estimate):
        first = _value(lines[0])
        if first is not None and first.ndim == 0 and not definition.contains(first.item()):
            raise Wrong(
                f"{what}: line 0 is the first that breaks: the definition gives {definition}, "
                f"line 0 gives {first.item():.4g}"
            )
        report = compare_lines(lines, rtol=rtol)
    else:
        names = ["the definition", *(f"line {i}" for i in range(len(lines)))]
        report = compare_lines([definition, *lines], names, rtol=rtol)
    if not report:
        raise Wrong(f"{what}: {report.message}")


def expectation_mc(
    sample: Callable[[int, torch.Generator], Any],
    statistic: Callable[[Any], Tensor],
    n: int,
    generator: torch.Generator,
    confidence: float = 0.9999,
) -> Estimate:
    """The mean of `statistic(sample(n, generator))`, a tensor [n], with its confidence interval."""
    values = tensor(statistic(sample(n, generator)), "the statistic", shape=(n,)).detach().double()
    z = torch.special.ndtri(torch.tensor((1 + confidence) / 2, dtype=torch.float64)).item()
    return Estimate(values.mean().item(), z * values.std().item() / math.sqrt(n), n, confidence)


def expectation_quadrature(
    f: Callable[[Tensor], Tensor],
    dims: int,
    order: int = 6,
    mu: float | Tensor = 0.0,
    sigma: float | Tensor = 1.0,
) -> Tensor:
    """E[f(x)] for x ~ N(mu, sigma^2 I_dims) on a Gauss-Hermite grid; f maps points [P, dims] to [P, ...].

    Exact when f is a polynomial of degree at most 2 * order - 1 in each coordinate; order ** dims points.
    """
    if order**dims > MAX_POINTS:
        raise ValueError(
            f"a grid of {order} ** {dims} points is too large: use fewer dimensions, a lower order, or expectation_mc"
        )
    nodes, weights = (torch.from_numpy(a) for a in np.polynomial.hermite_e.hermegauss(order))
    weights = weights / weights.sum()
    grid = torch.cartesian_prod(*[nodes] * dims).reshape(-1, dims)  # [P, dims]
    mass = torch.cartesian_prod(*[weights] * dims).reshape(-1, dims).prod(-1)  # [P]
    values = f(mu + sigma * grid).double()  # [P, ...]
    return (mass @ values.flatten(1)).reshape(values.shape[1:]) if values.ndim > 1 else mass @ values


def _value(line: Any) -> Tensor | None:
    """The line in float64, or None where it is neither a number nor a tensor."""
    if isinstance(line, (Tensor, np.ndarray)):
        line = torch.as_tensor(line).detach().cpu()
        return None if line.is_complex() else line.double()
    try:
        return None if isinstance(line, (bool, str)) else torch.tensor(float(line), dtype=torch.float64)
    except (TypeError, ValueError):
        return None


def _rtol(rtol: float | None, *lines: Any) -> tuple[float, float]:
    coarse = any(isinstance(x, Tensor) and x.is_floating_point() and x.dtype != torch.float64 for x in lines)
    default, atol = (RTOL_COARSE, ATOL_COARSE) if coarse else (RTOL, ATOL)
    return (default if rtol is None else rtol), atol


def _difference(a: Tensor, b: Tensor, name_a: str, name_b: str, tolerance: tuple[float, float]) -> str | None:
    """A sentence with both values where they differ, or None."""
    if a.shape != b.shape:
        return f"{name_a} has shape {list(a.shape)}, {name_b} has shape {list(b.shape)}"
    try:
        same(b, a, name_b, *tolerance)
    except Wrong:
        gap = torch.where(a == b, 0.0, (a - b).abs()).nan_to_num(posinf=math.inf)
        worst = int(gap.argmax())
        where = "" if a.ndim == 0 else f" at index {[int(i) for i in np.unravel_index(worst, a.shape)]}"
        x, y = a.flatten()[worst].item(), b.flatten()[worst].item()
        digits = next((p for p in range(4, 17) if f"{x:.{p}g}" != f"{y:.{p}g}"), 17)
        return f"{name_a} gives {x:.{digits}g}{where}, {name_b} gives {y:.{digits}g}"
    return None


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
