"""How a student's numbers that are not right follow from the right ones, in one sentence without values.

A relation is told only where it holds at every place, as exactly as the right answer has to, and for so many different
numbers that it cannot be chance. The sentences are few and name no number but small simple ones, so that they may be
read before the deadline too: nobody can learn an input from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checking.pairs import Pair, first_of
from course_utils.checking.relation_places import along, of_clear_parts, of_copies, of_order, of_parts
from course_utils.checking.relation_slices import of_lost_sums, of_running, of_slices, of_sums
from course_utils.checking.relation_values import of_bools, of_constants, of_digits, of_rules, of_single

LARGEST = 20_000  # numbers that are looked at
LOOSE = 1e-3  # a tolerance beyond this, as of an experiment, lets many rules hold
KINDS: tuple[Callable[[Pair], Iterator[str]], ...] = (  # the most telling first
    of_constants,
    of_bools,
    of_digits,
    of_rules,
    of_order,
    of_copies,
    of_clear_parts,
    of_sums,
    of_running,
    of_slices,
    of_parts,
    of_lost_sums,
)


def relation(have: np.ndarray, want: np.ndarray, rtol: float, atol: float, bools: bool = False) -> str:
    """The most telling relation between what a student has and what is right, in float64; "" where none is known."""
    if have.shape != want.shape or not 1 <= have.size <= LARGEST:
        return ""
    if not (np.isfinite(have).all() and np.isfinite(want).all()):
        return _of_infinities(have, want)
    loose = rtol > LOOSE or atol > LOOSE * float(np.abs(want).max())
    if loose or bools and have.size == 1:
        return ""
    pair = Pair(have, want, rtol, atol, bools)
    with np.errstate(all="ignore"):
        return first_of(sentence for kind in (KINDS if have.size > 1 else (of_single,)) for sentence in kind(pair))


def of_nan(have: np.ndarray, want: np.ndarray) -> str:
    """Where there is NaN, in a sentence."""
    nan = np.isnan(have)
    if nan.sum() < 2:
        return ""
    if nan.all():
        return "Everything is NaN"
    if bool((nan == (want == 0)).all()):
        return "It is NaN exactly where the expected ones are 0: a division by 0, or a softmax over nothing but -inf"
    return first_of(along(nan, "It is NaN", ""))


def _of_infinities(have: np.ndarray, want: np.ndarray) -> str:
    """Where one is infinite and the other is not."""
    yours, right = np.isinf(have), np.isinf(want)
    if yours.any() and not right.any():
        return "Some of yours are infinite, and none of the expected ones is"
    if right.any() and not yours.any():
        return "Some of the expected ones are infinite, and none of yours is"
    if (yours != right).any() and yours.any() and right.any():
        return "Yours are infinite at other places than the expected ones"
    return ""
