"""Derivations that cannot be faked: each line is a function in letters of its own, tied to the next line.

A list of numbers that are all equal proves nothing: one formula, copied, gives it. So each line of a derivation is a
function of the letters that *its* line is written in. It is compared with the truth at free letters, where no other
line could stand for it, and must give the next line where the letters of both are tied. An example, `E[(q - m)^2]`:

    def free_moments(rng):                                     # letters in the order of the function's arguments
        first, spread = torch.randn(2, generator=rng, dtype=torch.float64).tolist()
        return {"q1": first, "q2": first**2 + 1 + spread**2}

    def tied(rng):                                             # letters of this line, letters of the next
        mean, variance = 0.3, 1.7
        return {"q1": mean, "q2": variance + mean**2}, {"m": mean, "v": variance}

    moments = Line("spread_from_moments", spread_from_moments, free_moments, lambda q1, q2: q2 - q1**2)
    means = Line("spread_from_means", spread_from_means, free_means, lambda m, v: v)
    chain = Chain([moments, means], [Tie("q1 = m and q2 = v + m^2", tied)])

    check_line(moments, rng)              # in a suite: right at free letters; raises `Wrong` with letters and values
    check_tie(chain, 0, rng)              # in a suite: line 0 gives line 1 where the letters are tied
    show_chain(chain)                     # in a notebook (course_utils.notebook.derivations): all lines side by side

In a notebook a line needs no truth, so none is given away: `Line("spread_from_moments", spread_from_moments)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checking.compare import Wrong, number, same

Letters = Mapping[str, Any]  # name -> value, in the order of the function's arguments
Draw = Callable[[Any], Letters]  # from a seeded generator
POINTS = 4  # draws that a line or a tie is tried at


@dataclass(frozen=True)
class Line:
    """One line of a derivation: a function of its own letters, and what it must be at any of them."""

    name: str
    function: Callable[..., Any]
    draw: Draw | None = None  # free letters
    truth: Callable[..., Any] | None = None  # of the same letters, in the same order

    def at(self, letters: Letters) -> Any:
        """The line's value there: letters are handed over by place, so that their names are the author's own."""
        return self.function(*letters.values())


@dataclass(frozen=True)
class Tie:
    """Where a line and the next one must agree: what ties their letters, in words, and a draw of both."""

    words: str  # "q2 = v + m^2"
    draw: Callable[[Any], tuple[Letters, Letters]]


@dataclass(frozen=True)
class Chain:
    """The lines of a derivation, from the first to the result; `ties[i]` stands between line i and line i + 1."""

    lines: Sequence[Line]
    ties: Sequence[Tie]

    def __post_init__(self) -> None:
        if len(self.ties) != len(self.lines) - 1:
            raise ValueError(f"{len(self.lines)} lines need {len(self.lines) - 1} ties between them: {len(self.ties)}.")


def check_line(
    line: Line,
    rng: Any,
    points: int = POINTS,
    causes: Mapping[str, Callable[..., Any]] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise `Wrong` unless the line is its truth at free letters.

    `causes`: a sentence, and the wrong formula in the line's letters that it is about. Where exactly one of them gives
    the answer's value, and not the right one, its sentence is told too.
    """
    if line.draw is None or line.truth is None:
        raise ValueError(f"{line.name} has no draw or no truth: a suite needs both.")
    for _ in range(points):
        letters = line.draw(rng)
        got, truth = line.at(letters), line.truth(*letters.values())
        try:
            _same(got, truth, f"{line.name} at {spelt(letters)}", rtol, atol)
        except Wrong as wrong:
            fitting = [told for told, formula in (causes or {}).items() if _led(formula, letters, got, truth)]
            if len(fitting) != 1:
                raise
            raise Wrong(wrong.plain, wrong.mistake, f"Likely cause: {fitting[0]}.") from None


def check_tie(
    chain: Chain, step: int, rng: Any, points: int = POINTS, rtol: float | None = None, atol: float | None = None
) -> None:
    """Raise `Wrong` unless line `step` (from 0) gives the next one where their letters are tied."""
    line, after, tie = chain.lines[step], chain.lines[step + 1], chain.ties[step]
    for _ in range(points):
        letters, next_letters = tie.draw(rng)
        here, there = line.at(letters), after.at(next_letters)
        for name, value, at in ((line.name, here, letters), (after.name, there, next_letters)):
            if not _is_array(value) or not value.shape:
                number(value, f"{name} at {spelt(at)}")
        if not agree(here, there, rtol, atol):
            told = f"where {tie.words}, {apart(here, there, line.name, after.name)} (at {spelt(next_letters)})"
            raise Wrong(f"the step from {line.name} to {after.name} is no equality: {told}")


def agree(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """Whether two lines have the same value, up to rounding."""
    try:
        same(a, b, "the line", rtol, atol, dtype=False)
    except Wrong:
        return False
    return True


def apart(a: Any, b: Any, name_a: str, name_b: str) -> str:
    """How two values that do not agree differ: "f gives 2 and g gives 3", for arrays where they are furthest apart."""
    if _is_array(a) and _is_array(b) and a.shape and tuple(a.shape) == tuple(b.shape):
        pairs = list(zip(a.flatten().tolist(), b.flatten().tolist(), strict=True))
        worst = max(range(len(pairs)), key=lambda i: _gap(*pairs[i]))
        index: list[int] = []
        rest = worst
        for size in reversed(a.shape):
            rest, place = divmod(rest, size)
            index.insert(0, place)
        a, b = pairs[worst]
        return f"{name_a} gives {brief(a)} at index {index} and {name_b} gives {brief(b)}"
    return f"{name_a} gives {brief(a)} and {name_b} gives {brief(b)}"


def spelt(letters: Letters) -> str:
    """Letters with their values, numbers and short vectors in full: "mu = [1, -2], sigma = 0.5"."""
    return ", ".join(f"{name} = {brief(value)}" for name, value in letters.items())


def brief(value: Any) -> str:
    """A value in few characters: a number to six digits, a short vector entry by entry, else a shape."""
    if _is_array(value) and value.shape:
        if len(value.shape) == 1 and value.shape[0] <= 4:
            return "[" + ", ".join(brief(entry) for entry in value.tolist()) + "]"
        return f"a {'x'.join(str(n) for n in value.shape)} {'matrix' if len(value.shape) == 2 else 'array'}"
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _same(got: Any, truth: Any, what: str, rtol: float | None, atol: float | None) -> None:
    scalar = not _is_array(truth) or not truth.shape
    same(number(got, what) if scalar else got, truth, what, rtol, atol)


def _led(formula: Callable[..., Any], letters: Letters, got: Any, truth: Any) -> bool:
    """Whether a wrong formula gives this answer, and tells it from the right one here."""
    value = formula(*letters.values())
    return agree(got, value, 1e-5) and not agree(truth, value, 1e-5)


def _gap(a: float, b: float) -> float:
    return math.inf if math.isnan(a) or math.isnan(b) else 0.0 if a == b else abs(a - b)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape")
