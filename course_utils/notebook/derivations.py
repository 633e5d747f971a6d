"""Derivations checked by number: a chain of lines, each in letters of its own, shown side by side.

`Line`, `Tie` and `Chain` are those of `course_utils.checking.chains`, where an example stands; `show_chain` shows a
student's lines in a notebook. `compare_lines` compares lines that are plain numbers: they count from 0, like the list
that holds them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.checking.chains import Chain, agree, apart, brief, spelt
from course_utils.checking.chains import Line as Line
from course_utils.checking.chains import Tie as Tie
from course_utils.checking.compare import Wrong, same

RTOL, ATOL = 1e-6, 1e-9
RTOL_COARSE, ATOL_COARSE = 1e-3, 1e-5  # where a line is float32 or coarser


@dataclass(frozen=True)
class LinesReport:
    """What a comparison of lines found: all agree, or the index of the first broken one and a sentence."""

    ok: bool
    broken: int | None = None
    message: str = "all lines agree"

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.message


def show_chain(chain: Chain, points: int = 3, seed: int = 0) -> LinesReport:
    """Print the lines of a derivation side by side at several tied points, and name the first that breaks.

    Each row is a point: the letters, and what a line and the next one give there. Where a line has a truth (a
    simulation, an enumeration), it is held against that at free letters too. Returns what was found.
    """
    report = LinesReport(True, message="every step holds, at every point that was tried")
    rng = torch.Generator().manual_seed(seed)
    for i, line in enumerate(chain.lines):
        if line.draw is not None and line.truth is not None:
            drawn = [line.draw(rng) for _ in range(points)]
            rows = [_row(at, line.name, line.at(at), "the truth", line.truth(*at.values())) for at in drawn]
            print(f"{line.name}, at letters of its own", *(told for told, _ in rows), sep="\n")
            if report and not all(held for _, held in rows):
                report = LinesReport(False, i, f"{line.name} is the first that breaks: it is not true by itself")
        if i == len(chain.ties):
            break
        tie, after = chain.ties[i], chain.lines[i + 1]
        tied = [tie.draw(rng) for _ in range(points)]
        rows = [_row(to, line.name, line.at(at), after.name, after.at(to)) for at, to in tied]
        print(f"{line.name} -> {after.name}, where {tie.words}", *(told for told, _ in rows), sep="\n")
        if report and not all(held for _, held in rows):
            told = f"the step from {line.name} to {after.name} is the first that breaks"
            report = LinesReport(False, i + 1, f"{told}: the two differ where {tie.words}")
    print(f"{'ok' if report else 'NOT YET'}: {report.message}")
    return report


def _row(letters: Mapping[str, Any], name: str, value: Any, other: str, expected: Any) -> tuple[str, bool]:
    """One point of a chain in words, and whether the two values agree there."""
    held = agree(value, expected, RTOL, ATOL)
    told = f"both give {brief(expected)}" if held else apart(value, expected, name, other)
    return f"  {'=' if held else '!'} {told}, at {spelt(letters)}", held


def compare_lines(lines: Sequence[Any], names: Sequence[str] | None = None, rtol: float | None = None) -> LinesReport:
    """Compare every line with the one before it and name the first that breaks, with both values.

    A line is a number (Python, numpy, SymPy) or a tensor; all have one shape.
    """
    names = names or [f"line {i}" for i in range(len(lines))]
    previous: Tensor | None = None
    for i, line in enumerate(lines):
        value = value_of(line)
        if value is None:
            return LinesReport(False, i, f"{names[i]} is {kind_of(line)}, expected a number or a tensor")
        if value.isnan().any():
            return LinesReport(False, i, f"{names[i]} is the first that breaks: it has NaN")
        if previous is not None:
            difference = _difference(previous, value, names[i - 1], names[i], _rtol(rtol, lines[i - 1], line))
            if difference:
                return LinesReport(False, i, f"{names[i]} is the first that breaks: {difference}")
        previous = value
    return LinesReport(True)


def value_of(line: Any) -> Tensor | None:
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


def kind_of(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
