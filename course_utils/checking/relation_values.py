"""What a student's numbers are, one by one: a multiple, a shift or a power of the right ones, or too few digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checking.pairs import Pair, axis_name, different

FACTORS = {
    2.0: "2 times", 0.5: "half of", 3.0: "3 times", 1 / 3: "a third of", 4.0: "4 times", 0.25: "a quarter of",
    1.5: "1.5 times", 2 / 3: "two thirds of", 8.0: "8 times", 0.125: "an eighth of", 10.0: "10 times",
    0.1: "a tenth of", 100.0: "100 times", 0.01: "a hundredth of", 1000.0: "1000 times", 0.001: "a thousandth of",
    math.sqrt(2): "the square root of 2 times", math.sqrt(0.5): "the square root of 1/2 times",
    math.log(2): "log(2) times", 1 / math.log(2): "1/log(2) times", math.pi: "pi times", 2 * math.pi: "2 pi times",
}  # fmt: skip
SHIFTS = {1.0: "1", 0.5: "0.5", 2.0: "2", 0.25: "0.25", 3.0: "3", 10.0: "10"}
ENOUGH_BOOLS = 3
SINGLE = (2.0, 0.5)  # factors that a single number may show
NEARLY = 3e-5  # relative to the largest: what is that near is right but for something small
RULES: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("1 minus the expected one", lambda y: 1 - y),
    ("the square of the expected one", np.square),
    ("the square root of the expected one", np.sqrt),
    ("the absolute value of the expected one", np.abs),
    ("exp of the expected one", np.exp),
    ("the logarithm of the expected one", np.log),
    ("minus the logarithm of the expected one", lambda y: -np.log(y)),
    ("exp of minus the expected one", lambda y: np.exp(-y)),
    ("1 over the expected one", lambda y: 1 / y),
    ("1 over the square root of the expected one", lambda y: 1 / np.sqrt(y)),
    ("1 over the square of the expected one", lambda y: 1 / np.square(y)),
    ("the expected one to the power of 3", lambda y: y**3),
    ("tanh of the expected one", np.tanh),
    ("the sigmoid of the expected one", lambda y: 1 / (1 + np.exp(-y))),
    ("the expected one where that is positive, and 0 elsewhere", lambda y: np.maximum(y, 0)),
    ("the expected one where that is below 1, and 1 elsewhere", lambda y: np.minimum(y, 1)),
    ("y (1 - y) of the expected one y", lambda y: y * (1 - y)),
)  # fmt: skip


def of_single(pair: Pair) -> Iterator[str]:
    """What may be said of a single number, which fits many rules by chance."""
    x, y = pair.have, pair.want
    if abs(y.item()) <= 100 * max(pair.atol, 1e-6):
        return
    if bool(pair.close(x, -y)):
        yield "It is -1 times the expected one"
    for factor in SINGLE:
        if not pair.simple and bool(pair.close(x, factor * y)):
            yield f"It is {FACTORS[factor]} the expected one"


def of_constants(pair: Pair) -> Iterator[str]:
    """All of the student's numbers are the same, and the right ones are not."""
    x = pair.have
    if x.size > 1 and different(x) == 1 and different(pair.want) > 1:
        if pair.bools:
            yield f"All of yours are {bool(x.flat[0])}"
        else:
            yield "All of yours are 0" if not x.any() else "All of yours are the same number"
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2] > 1
    if square and (x == np.eye(x.shape[-1])).all():
        yield "Yours is the identity matrix"


def of_bools(pair: Pair) -> Iterator[str]:
    """True and False, where they are the wrong way round, too many or too few."""
    if not pair.bools or pair.have.size < ENOUGH_BOOLS:
        return
    have, want = pair.have.astype(bool), pair.want.astype(bool)
    if (have != want).all():
        yield "True and False are swapped everywhere"
    elif want.any() and (have | ~want).all():
        yield "Yours is True wherever it should be, and at other places too"
    elif have.any() and (want | ~have).all():
        yield "Yours is True only where it should be, but not everywhere there"


def of_rules(pair: Pair) -> Iterator[str]:
    """One rule makes the student's number out of the right one, everywhere."""
    x, y = pair.have, pair.want
    if pair.holds(-y):
        yield "Yours has the other sign everywhere"
    yield from _factor(pair)
    yield from _shift(pair)
    with np.errstate(all="ignore"):
        for words, rule in RULES:
            if pair.holds(np.asarray(rule(y))):
                yield f"Yours is {words}, everywhere"
    if not pair.simple and (x == np.rint(x)).all():
        for words, rounded in (("rounded", np.rint), ("cut off", np.trunc), ("rounded down", np.floor)):
            if np.array_equal(x, rounded(y)):
                yield f"Yours are the expected numbers {words} to whole ones: is there an integer dtype or a `//`?"
    yield from _affine(pair)


def _factor(pair: Pair) -> Iterator[str]:
    x, y = pair.have, pair.want
    i = int(np.abs(y).argmax())
    factor = float(x.flat[i] / y.flat[i]) if y.flat[i] else 0.0
    if factor == 0 or not pair.holds(factor * y, parameters=1):
        return
    size = abs(factor)
    told = next((words for value, words in FACTORS.items() if math.isclose(size, value, rel_tol=1e-5)), None)
    sign = ", with the other sign" if factor < 0 else ""
    if told:
        yield f"Yours is {told} the expected one everywhere{sign}"
        return
    for axis, n in enumerate(y.shape):
        name = f"the length of {axis_name(axis, y.ndim)}"
        named = {n: f"times {name}", 1 / n: f"divided by {name}", n**0.5: f"times the square root of {name}",
                 n**-0.5: f"divided by the square root of {name}"}  # fmt: skip
        named |= {n / (n - 1): f"times n/(n - 1), n {name}", (n - 1) / n: f"times (n - 1)/n, n {name}"} if n > 2 else {}
        for value, words in named.items():
            if math.isclose(size, value, rel_tol=1e-5):
                yield f"Yours is the expected one {words}, everywhere{sign}"
                return
    if not pair.simple:
        yield f"Yours is the expected one times one factor, the same everywhere{sign}"


def _shift(pair: Pair) -> Iterator[str]:
    x, y = pair.have, pair.want
    shift = float((x - y).flat[0])
    if not pair.holds(y + shift, parameters=1):
        return
    told = next((words for value, words in SHIFTS.items() if math.isclose(abs(shift), value, rel_tol=1e-5)), None)
    if told is None and pair.simple:  # such as counted entries, which lie apart by one number wherever they stand
        return
    side = "larger" if shift > 0 else "smaller"
    yield f"Yours is {side} than the expected one by {told or 'one number, the same'} everywhere"


def _affine(pair: Pair) -> Iterator[str]:
    x, y = pair.have.ravel(), pair.want.ravel()
    if pair.simple or different(y) < 2:
        return
    low, high = int(y.argmin()), int(y.argmax())
    slope = float((x[high] - x[low]) / (y[high] - y[low]))
    if slope and pair.holds(slope * pair.want + (x[low] - slope * y[low]), parameters=2):
        yield "Yours is the expected one times a factor and plus a number, both the same everywhere"


def of_digits(pair: Pair) -> Iterator[str]:
    """Nearly right: computed in float32, or something small is added."""
    x, y = pair.have, pair.want
    size = float(np.abs(y).max())
    if pair.rtol > 1e-6 or not pair.enough(x[pair.off]) or np.abs(x - y).max() > NEARLY * size:
        return
    with np.errstate(over="ignore"):
        coarse = x.astype(np.float32).astype(np.float64)
    if np.array_equal(coarse, x) and not np.array_equal(y.astype(np.float32).astype(np.float64), y):
        yield "Yours agree to 7 digits only and are float32 numbers: something was computed in float32 on the way"
    else:
        digits = int(-math.log10(float(np.abs(x - y).max()) / size))
        yield (
            f"Yours agree nearly, to some {digits} digits: look at what is small, such as where an epsilon stands, "
            "float32 on the way or an approximation"
        )
