"""Two arrays of one shape, the student's and the right one, held against each other; and what counts as chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

ENOUGH = 2  # numbers beyond the free ones of a rule that cannot fit it by chance
ENOUGH_SIMPLE = 4  # the same of multiples of 1/16, of which there are few
ENOUGH_FLAGS = 6  # the same of True and False


@dataclass(frozen=True, eq=False)
class Pair:
    """What a student has and what is right, in float64 and finite; `rtol` and `atol` are those of their comparison.

    `bools` says that both hold True and False.
    """

    have: np.ndarray
    want: np.ndarray
    rtol: float
    atol: float
    bools: bool = False

    @cached_property
    def off(self) -> np.ndarray:
        """Where the two differ."""
        return ~self.close(self.have, self.want)

    @cached_property
    def simple(self) -> bool:
        """Whether all numbers are whole or simple fractions, so that many agree by chance."""
        return all(bool((16 * values == np.rint(16 * values)).all()) for values in (self.have, self.want))

    def close(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Where x agrees with y as an answer has to agree with the right one."""
        with np.errstate(all="ignore"):
            return np.asarray(np.abs(x - y) <= self.atol + self.rtol * np.abs(y))

    def holds(self, rule: np.ndarray, parameters: int = 0, where: np.ndarray | None = None) -> bool:
        """Whether a rule that has so many free numbers gives what the student has, and cannot do so by chance.

        `rule` is what the student would have. What counts as evidence are different numbers, where the right ones would
        not do. `where` limits the rule to some of the places.
        """
        if rule.shape != self.have.shape or not np.isfinite(rule).all():
            return False
        fits, off = self.close(self.have, rule), self.off
        if where is not None:
            fits, off = fits[where], off[where]
        if not fits.all():
            return False
        seen = self.have[self.off if where is None else self.off & where]
        return self.enough(seen, parameters)

    def enough(self, seen: np.ndarray, parameters: int = 0) -> bool:
        """Whether so many of the numbers are different that no rule with so many free ones fits them by chance."""
        if self.bools:
            return seen.size >= ENOUGH_FLAGS
        return different(seen) >= parameters + (ENOUGH_SIMPLE if self.simple else ENOUGH)


def different(values: np.ndarray) -> int:
    """How many numbers are different, up to rounding."""
    if not values.size:
        return 0
    ordered = np.sort(values, axis=None)
    room = 1e-6 * max(abs(float(ordered[0])), abs(float(ordered[-1])))
    return 1 + int((np.diff(ordered) > room).sum())


def axis_name(axis: int, axes: int) -> str:
    """An axis in words."""
    if axes > 1 and axis == axes - 1:
        return "the last axis"
    return "its axis" if axes == 1 else "the first axis" if axis == 0 else f"axis {axis}"


def first_of(sentences: Iterator[str]) -> str:
    """The first of some sentences; none where there are none."""
    return next(islice(sentences, 1), "")
