"""Where a student's numbers stand: at other places, one place's at all of them, or right at some places only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from course_utils.checking.pairs import Pair, axis_name, different

MOST_AXES = 4
MOST_PLACES = 64  # of an axis whose places are told apart
ORDINALS = ("first", "second", "third")


def of_order(pair: Pair) -> Iterator[str]:
    """The right numbers in another order."""
    x, y = pair.have, pair.want
    if x.ndim > MOST_AXES or different(y) < 2:
        return
    yield from _turned(pair)
    for axis in range(y.ndim):
        if pair.holds(np.flip(y, axis)):
            yield f"Yours are the expected ones in reverse along {axis_name(axis, y.ndim)}"
    for axis in range(y.ndim):
        yield from _moved(pair, axis)
    for axes in _permutations(y.ndim):
        turned = y.reshape([y.shape[a] for a in axes]).transpose(_inverse(axes))
        for mixed in (y.transpose(axes).reshape(y.shape), turned):
            if pair.holds(mixed):
                yield (
                    "Yours are the expected numbers put together in another order: a reshape where axes must be "
                    "transposed, or the other way round"
                )
                return
    for axis in range(y.ndim):
        if (rows := _rows(pair, axis)) is not None and len(set(rows)) == len(rows):
            yield f"Yours are the expected ones in another order along {axis_name(axis, y.ndim)}"
    ordered = Pair(np.sort(x, axis=None), np.sort(y, axis=None), pair.rtol, pair.atol)
    if not ordered.off.any() and pair.enough(x[pair.off]):
        yield "Yours are the same numbers as the expected ones, but at other places"


def _turned(pair: Pair) -> Iterator[str]:
    y = pair.want
    for axes in _permutations(y.ndim):
        if pair.holds(y.transpose(axes)):
            moved = [axis for axis, old in enumerate(axes) if axis != old]
            if len(moved) == 2:
                yield f"Yours is the expected one transposed: axes {moved[0]} and {moved[1]} are swapped"
            else:
                yield "Yours is the expected one with its axes in another order"


def _moved(pair: Pair, axis: int) -> Iterator[str]:
    """Shifted by a place or two, with what falls out coming in again, or something else in its place."""
    y, n, name = pair.want, pair.want.shape[axis], axis_name(axis, pair.want.ndim)
    for by in (1, -1, 2, -2):
        if n <= abs(by) + 1:
            continue
        rolled = np.roll(y, by, axis)
        side = "later" if by > 0 else "earlier"
        how = "one place" if abs(by) == 1 else "two places"
        if pair.holds(rolled):
            yield f"Yours are the expected ones {how} {side} along {name}, around the end"
        inside = np.zeros(y.shape, dtype=bool)
        np.moveaxis(inside, axis, 0)[slice(by, None) if by > 0 else slice(None, by)] = True
        if pair.holds(rolled, where=inside):
            yield f"Yours are the expected ones {how} {side} along {name}"


def of_copies(pair: Pair) -> Iterator[str]:
    """What stands at each place of an axis is what belongs to one place, or is the same everywhere."""
    x, y = pair.have, pair.want
    if x.ndim > MOST_AXES:
        return
    for axis in range(y.ndim):
        n, name = y.shape[axis], axis_name(axis, y.ndim)
        if n < 2 or n > MOST_PLACES:
            continue
        first = np.take(x, [0], axis)
        same = bool(pair.close(x, np.broadcast_to(first, x.shape)).all())
        rows = _rows(pair, axis)
        if same and rows is not None:
            yield f"At every place of {name} you have what is expected at its {_ordinal(rows[0], n)} place only"
        elif rows is not None and len(set(rows)) < n:
            yield f"At each place of {name} you have what is expected at some place of it, but often at another one"
    for axis in range(y.ndim):
        n, name = y.shape[axis], axis_name(axis, y.ndim)
        if n < 2 or x.ndim < 2:
            continue
        first = np.take(x, [0], axis)
        varies = not pair.close(y, np.broadcast_to(np.take(y, [0], axis), y.shape)).all()
        if varies and bool(pair.close(x, np.broadcast_to(first, x.shape)).all()):
            yield f"Yours are the same at all places of {name}; the expected ones differ from place to place"


def _rows(pair: Pair, axis: int) -> list[int] | None:
    """Which place of the right ones each place of an axis has; None where one has none, or more than one could be."""
    n = pair.want.shape[axis]
    if not 2 <= n <= MOST_PLACES or pair.want.size // n < 2 or not pair.enough(pair.have[pair.off]):
        return None
    wanted = np.moveaxis(pair.want, axis, 0)
    found = []
    for row in np.moveaxis(pair.have, axis, 0):
        fits = [j for j in range(n) if bool(pair.close(row, wanted[j]).all())]
        if len(fits) != 1:
            return None
        found += fits
    return found


def of_clear_parts(pair: Pair) -> Iterator[str]:
    """Right at some places, and at the others by a simple rule wrong."""
    if what_is_there(pair):
        yield from of_parts(pair)


def of_parts(pair: Pair) -> Iterator[str]:
    """Right at some places, and wrong at others that have something in common."""
    off, y, there = pair.off, pair.want, what_is_there(pair)
    if off.all() or int(off.sum()) < 2 or int((~off).sum()) < 2:
        return
    if y.ndim >= 2:
        rows, columns = np.indices(y.shape[-2:])
        regions = {"on": rows == columns, "above": columns > rows, "below": columns < rows, "off": columns != rows}
        for words, region in regions.items():
            inside = np.broadcast_to(region, y.shape)
            if inside.any() and (off == inside).all():
                yield f"Yours differs exactly {words} the diagonal of the last two axes, and agrees elsewhere{there}"
    if not pair.bools:
        zero, none = np.abs(y) <= pair.atol, np.abs(pair.have) <= pair.atol
        if zero.any() and not (off & ~zero).any():
            every = "exactly where" if (off == zero).all() else "only where"
            yield f"Yours differs {every} the expected ones are 0"
        elif none.any() and (off == none).all():
            yield "Yours is 0 where the expected ones are not, and agrees at all other places"
        elif (y < 0).any() and (off == (y < 0)).all():
            yield f"Yours differs exactly where the expected ones are negative{there}"
        elif (y > 0).any() and (y < 0).any() and (off == (y > 0)).all():
            yield f"Yours differs exactly where the expected ones are positive{there}"
    yield from along(off, "Yours differs", f", and agrees at all others{there}")


def along(flags: np.ndarray, before: str, after: str) -> Iterator[str]:
    """The axis along which flags stand closest together, and where."""
    best, told = 1.0, ""
    for axis, n in enumerate(flags.shape):
        flagged = [int(i) for i in np.flatnonzero(flags.any(axis=tuple(a for a in range(flags.ndim) if a != axis)))]
        if len(flagged) / n < best and (words := _places(flagged, n)):
            best, told = len(flagged) / n, f"{words} of {axis_name(axis, flags.ndim)}"
    if told:
        yield f"{before} only at {told}{after}"


def _places(bad: Sequence[int], n: int) -> str:
    """Some places of an axis in words, where they have something in common."""
    if len(bad) == 1:
        return f"the {_ordinal(bad[0], n)} place"
    if list(bad) == list(range(1, n)):
        return "all places after the first"
    if list(bad) == list(range(n - 1)):
        return "all places but the last"
    if len(bad) == n - 1:
        (good,) = set(range(n)) - set(bad)
        return f"all places but the {_ordinal(good, n)}"
    if list(bad) == list(range(n - len(bad), n)):
        return f"the last {len(bad)} places"
    if list(bad) == list(range(len(bad))):
        return f"the first {len(bad)} places"
    if len(bad) > 1 and list(bad) == list(range(bad[0] % 2, n, 2)):
        return f"every second place, from the {_ordinal(bad[0], n)} on,"
    return ""


def what_is_there(pair: Pair) -> str:
    """What is known of the numbers at the wrong places."""
    x, y = pair.have[pair.off], pair.want[pair.off]
    if pair.bools:
        return ""
    if not x.any():
        return "; there yours is 0"
    if pair.holds(-pair.want, where=pair.off):
        return "; there yours has the other sign"
    for words, factor in (("2 times", 2.0), ("half of", 0.5)):
        if pair.holds(factor * pair.want, where=pair.off):
            return f"; there yours is {words} the expected one"
    return "; there the expected one is 0" if not y.any() else ""


def _ordinal(i: int, n: int) -> str:
    if i == n - 1:
        return "last"
    return ORDINALS[i] if i < len(ORDINALS) else f"{i + 1}th"


def _permutations(axes: int) -> list[tuple[int, ...]]:
    """All orders of the axes but the usual one, those first that swap two."""
    usual = tuple(range(axes))
    return sorted((p for p in permutations(usual) if p != usual), key=lambda p: sum(a != b for a, b in enumerate(p)))


def _inverse(axes: Sequence[int]) -> list[int]:
    return [int(a) for a in np.argsort(axes)]
