"""What a student's numbers are along an axis: normalised wrongly, with another temperature, summed up on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_utils.checking.pairs import Pair, axis_name, different

LONG_ENOUGH = 3  # places of an axis beyond the free numbers of a rule


def of_sums(pair: Pair) -> Iterator[str]:
    """Numbers that are to sum to 1 over one axis, and sum to it over another or none."""
    x, y = pair.have, pair.want
    yours, right = (_axes_of_ones(pair, values) for values in (x, y))
    if len(right) != 1 or (y < 0).any() or np.isin(y, (0, 1)).all():
        return
    name = axis_name(right[0], y.ndim)
    if len(yours) == 1 and yours != right:
        yield f"Yours sum to 1 over {axis_name(yours[0], x.ndim)}, the expected ones over {name}"
    elif x.ndim > 1 and bool(pair.close(x.sum(), np.asarray(1.0))):
        yield f"Yours sum to 1 all together, the expected ones over {name}"


def of_lost_sums(pair: Pair) -> Iterator[str]:
    """Numbers of which one sort sums to 1 over an axis, and the other over none."""
    x, y = pair.have, pair.want
    if not pair.enough(x[pair.off]) or np.isin(y, (0, 1)).all():
        return
    yours, right = (_axes_of_ones(pair, values) for values in (x, y))
    if len(right) == 1 and not yours:
        yield f"The expected ones sum to 1 over {axis_name(right[0], y.ndim)}, and yours do not"
    elif len(yours) == 1 and not right:
        yield f"Yours sum to 1 over {axis_name(yours[0], x.ndim)}, and the expected ones do not, as if normalised"


def _axes_of_ones(pair: Pair, x: np.ndarray) -> list[int]:
    """The axes over which numbers sum to 1."""
    return [axis for axis in range(x.ndim) if x.shape[axis] > 1 and _sums_to_one(pair, x, axis)]


def _sums_to_one(pair: Pair, x: np.ndarray, axis: int) -> bool:
    """Whether the sums over an axis are 1, or 0 where nothing is to be seen, and not all of these."""
    sums = x.sum(axis)
    ones = pair.close(sums, np.ones_like(sums))
    return bool(ones.any() and (ones | (sums == 0)).all())


def of_slices(pair: Pair) -> Iterator[str]:
    """Right up to a factor, a number or a power that each slice along an axis has of its own."""
    x, y = pair.have, pair.want
    if different(y) < 2:
        return
    axes = [axis for axis in reversed(range(y.ndim)) if y.shape[axis] >= LONG_ENOUGH]
    yield from _of_places(pair)
    for axis in axes:
        name, others = axis_name(axis, y.ndim), y.size // y.shape[axis]
        with np.errstate(all="ignore"):
            if y.ndim > 1 and pair.holds(_scaled(x, y, axis), parameters=others):
                yield (
                    f"Along {name} yours is as expected up to a factor, which is another at each place of the other "
                    "axes: look at what is divided by, and over which axis"
                )
            if y.ndim > 1 and pair.holds(_shifted(x, y, axis), parameters=others):
                yield (
                    f"Along {name} yours is as expected up to an added number, which is another at each place of the "
                    "other axes: look at what is added or subtracted, and over which axis"
                )
            if (x >= 0).all() and (y >= 0).all() and (power := _power(pair, axis)):
                yield power
    for axis in axes:
        n = y.shape[axis]
        if y.ndim > 1 and pair.holds(_standard(x, y, axis), 2 * y.size // n):
            yield (
                f"Along {axis_name(axis, y.ndim)} yours is as expected up to a factor and an added number, which are "
                "others at each place of the other axes: another mean or another spread"
            )


def _of_places(pair: Pair) -> Iterator[str]:
    """Right up to a number or factor that depends on the place along one axis alone, as a bias or a gain does."""
    x, y = pair.have, pair.want
    for axis in reversed(range(y.ndim)):
        n, others = y.shape[axis], tuple(a for a in range(y.ndim) if a != axis)
        if n < 2 or not others or y.size < LONG_ENOUGH * n:
            continue
        told = f"that depends on the place along {axis_name(axis, y.ndim)} alone"
        if pair.holds(y + (x - y).mean(others, keepdims=True), parameters=n):
            yield f"Yours is as expected up to an added number {told}: look at a bias or a shift"
        square = (y * y).sum(others, keepdims=True)
        factor = (x * y).sum(others, keepdims=True) / np.where(square > 0, square, 1)
        if pair.holds(y * factor, parameters=n):
            yield f"Yours is as expected up to a factor {told}: look at a weight or a gain"


def _scaled(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    """The right numbers, with the best factor for each slice."""
    square = (y * y).sum(axis, keepdims=True)
    return y * np.where(square > 0, (x * y).sum(axis, keepdims=True) / np.where(square > 0, square, 1), 0)


def _shifted(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    """The right numbers, with the best number added to each slice."""
    return y + (x - y).mean(axis, keepdims=True)


def _standard(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    """The right numbers, with the best factor and the best number added for each slice."""
    middle = y - y.mean(axis, keepdims=True)
    return _scaled(x - x.mean(axis, keepdims=True), middle, axis) + x.mean(axis, keepdims=True)


def _power(pair: Pair, axis: int) -> str:
    """Both are softmaxes over an axis, of scores of which one are a multiple of the others."""
    x, y = pair.have, pair.want
    seen = (x > 1e-12) & (y > 1e-12)
    sums = [_sums_to_one(pair, values, axis) for values in (x, y)]
    if not all(sums) or ((x > 1e-12) != (y > 1e-12)).any():
        return ""
    logs = [_centred(np.log(np.where(seen, values, 1)), seen, axis) for values in (x, y)]
    i = int(np.abs(logs[1]).argmax())
    if not logs[1].flat[i]:
        return ""
    power = float(logs[0].flat[i] / logs[1].flat[i])
    raised = np.where(seen, y, 0) ** power if power > 0 else np.where(seen, np.where(seen, y, 1) ** power, 0)
    total = raised.sum(axis, keepdims=True)
    if not pair.holds(raised / np.where(total > 0, total, 1), parameters=1):
        return ""
    if power < 0:
        return "Yours is a softmax of scores with the other sign"
    size = "larger" if power > 1 else "smaller"
    return f"Yours is a softmax of scores that are {size} than the expected ones by one factor: how are they scaled?"


def _centred(logs: np.ndarray, seen: np.ndarray, axis: int) -> np.ndarray:
    count = np.maximum(seen.sum(axis, keepdims=True), 1)
    return np.where(seen, logs - np.where(seen, logs, 0).sum(axis, keepdims=True) / count, 0)


def of_running(pair: Pair) -> Iterator[str]:
    """Running sums where there should be none, or the other way round."""
    x, y = pair.have, pair.want
    for axis in range(y.ndim):
        if y.shape[axis] < 2:
            continue
        name = axis_name(axis, y.ndim)
        if pair.holds(np.cumsum(y, axis)):
            yield f"Yours are the running sums of the expected ones along {name}"
        zero = np.zeros_like(np.take(y, [0], axis))
        if pair.holds(np.diff(y, axis=axis, prepend=zero)):
            yield f"The expected ones are the running sums of yours along {name}"
        total = y.sum(axis, keepdims=True)
        with np.errstate(all="ignore"):
            if pair.holds(y / total):
                yield f"Yours are the expected ones divided by their sum over {name}"
            norm = np.sqrt((y * y).sum(axis, keepdims=True))
            if pair.holds(y / norm):
                yield f"Yours are the expected ones divided by their norm over {name}"
            if pair.holds(_softmax(y, axis)):
                yield f"Yours are a softmax over {name} of the expected ones"
            if pair.holds(y - y.mean(axis, keepdims=True)):
                yield f"Yours are the expected ones without their mean over {name}"
            if pair.enough(x) and bool(pair.close(_softmax(x, axis), y).all()):
                yield f"The expected ones are a softmax over {name} of yours"


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    raised = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(raised / raised.sum(axis, keepdims=True))
