"""What is told of shapes, lists, sets and words that are not as expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import numpy as np

from course_utils.checking.pairs import first_of

MOST_ITEMS = 2_000  # of a list that is looked through


def of_shapes(have: np.ndarray, want: np.ndarray, close: Callable[[np.ndarray, np.ndarray], bool]) -> Iterator[str]:
    """Right numbers in another shape; else what the shape alone shows."""
    a, b = have.shape, want.shape
    if want.size > 1 and bool((want == want.flat[0]).all()):  # numbers that are all the same tell nothing
        return
    if have.size == want.size and have.ndim > 1 and a != b and sorted(a) == sorted(b):
        for axes in _orders(a, b):
            if close(have.transpose(axes), want):
                yield "The numbers are as expected, but the axes are in another order: look for a transpose"
    if have.size == want.size and have.size > 1 and close(have.reshape(b), want):
        if _longer(a) == _longer(b):
            yield f"The numbers are as expected. {first_of(of_shape(a, b))}"
        yield "The numbers are as expected, but have another shape"
    yield from of_shape(a, b)


def of_shape(have: Sequence[int], want: Sequence[int]) -> Iterator[str]:
    """What a wrong shape shows without its numbers."""
    a, b = tuple(have), tuple(want)
    if len(a) == len(b) and sorted(a) == sorted(b):
        yield "The axes are in another order"
    elif _longer(a) == _longer(b):
        side = "too many" if len(a) > len(b) else "missing"
        yield f"There is an axis of length 1 {side}: look at `keepdim` and `squeeze`"
    elif len(a) == len(b) - 1 and (lost := _missing(a, b)):
        yield f"The {lost} axis is missing: something sums or picks over it"
    elif len(b) == len(a) - 1 and (more := _missing(b, a)):
        yield f"There is one axis too many, the {more} one: something is not summed, picked or joined over it"
    elif len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1:
        i = next(i for i in range(len(a)) if a[i] != b[i])
        by = a[i] - b[i]
        told = {1: "one place too long", -1: "one place too short"}.get(by, "too long" if by > 0 else "too short")
        if len(a) > 1:
            yield f"Axis {i} is {told}, the others are as expected"


def _longer(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


def _missing(short: tuple[int, ...], long: tuple[int, ...]) -> str:
    """Which axis of the longer shape the shorter one lacks, where only one can be meant."""
    found = [i for i in range(len(long)) if long[:i] + long[i + 1 :] == short]
    if len(found) != 1:
        return ""
    i = found[0]
    return "last" if i == len(long) - 1 else ("first", "second", "third")[i] if i < 3 else f"{i + 1}th"


def _orders(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The orders of axes that turn one shape into the other."""
    from itertools import permutations

    if len(a) <= 4:
        yield from (axes for axes in permutations(range(len(a))) if tuple(a[i] for i in axes) == b)


def of_lists(have: Sequence[Any], want: Sequence[Any]) -> Iterator[str]:
    """The right items in another order, or some too many or missing at an end."""
    a, b = list(have), list(want)
    if max(len(a), len(b)) > MOST_ITEMS or not all(isinstance(item, str | int | float | tuple) for item in a + b):
        return
    if len(a) == len(b) and len(set(b)) > 2:
        if a == b[::-1]:
            yield "Yours are the expected ones in reverse"
        elif a == b[1:] + b[:1] or a == b[-1:] + b[:-1]:
            yield "Yours are the expected ones, moved by one place"
        elif a[1:] == b[:-1] or a[:-1] == b[1:]:
            yield f"Yours are the expected ones, one place {'later' if a[1:] == b[:-1] else 'earlier'}"
        elif sorted(map(repr, a)) == sorted(map(repr, b)):
            yield "Yours are the expected ones in another order"
    if len(b) > 1 and len(a) == len(b) - 1:
        for words, lacking in (("last", b[:-1]), ("first", b[1:])):
            if a == lacking:
                yield f"Only the {words} one is missing"
    if b and len(a) > len(b):
        one = len(a) == len(b) + 1
        if a[: len(b)] == b:
            yield (
                "The last one is too many, the others are as expected" if one else "It goes on after the expected ones"
            )
        elif a[-len(b) :] == b:
            yield (
                "The first one is too many, the others are as expected"
                if one
                else "It has others before the expected ones"
            )
    if 1 < len(a) < len(b) - 1:
        if a == b[: len(a)]:
            yield "It ends too early: up to there it is as expected"
        elif a == b[-len(a) :]:
            yield "It begins too late: from there on it is as expected"


def of_sets(have: Set[Any], want: Set[Any]) -> Iterator[str]:
    """Some too many or some missing, the others right."""
    if have > want:
        yield "All that should be in it is, and more"
    elif have and have < want:
        yield "All that is in it belongs there, but some are missing"


def of_words(have: str, want: str) -> Iterator[str]:
    """The same text but for case or spaces, or with something more or less at its end."""
    if have.casefold() == want.casefold():
        yield "It differs in capital letters only"
    elif "".join(have.split()) == "".join(want.split()):
        yield "It differs in spaces or line ends only"
    elif have == want[::-1]:
        yield "It is the expected text in reverse"
    elif want and have.startswith(want):
        yield "It goes on after the expected text"
    elif have and want.startswith(have):
        yield "It ends too early: up to there it is as expected"
