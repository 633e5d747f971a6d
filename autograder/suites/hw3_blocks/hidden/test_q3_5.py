"""Hidden checks of q3_5: sinusoidal_encoding and shift_matrix."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.instruments.calls import call_with_default_dtype

F64 = torch.float64


def _entry(t, c, d, base=10000.0, first=0):
    """One entry of the table: position t, column c of d."""
    angle = (t + first) / base ** ((c - c % 2) / d)
    return math.cos(angle) if c % 2 else math.sin(angle)


def _table(n, d, first=0, **how):
    return torch.tensor([[_entry(t, c, d, first=first, **how) for c in range(d)] for t in range(n)], dtype=F64)


def _from_angles(angle, d):
    """The table for other angles [n, ceil(d / 2)]: sine and cosine in turn."""
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :d]


def _causes(n, d):
    t, i = torch.arange(n, dtype=F64)[:, None], torch.arange((d + 1) // 2, dtype=F64)
    right = t / 10000 ** (2 * i / d)
    sines, cosines = right.sin(), right.cos()
    interleaved = _table(n, d)
    return {
        "positions count from 0, and yours from 1": _table(n, d, first=1),
        "sine and cosine have changed places": _from_angles(right + math.pi / 2, d) * torch.tensor([1.0, -1.0]).repeat(
            (d + 1) // 2)[:d],
        "all sines stand in front of all cosines; they take turns, column by column":
            torch.cat([sines, cosines], 1)[:, :d],
        "all cosines stand in front of all sines; they take turns, sine first": torch.cat([cosines, sines], 1)[:, :d],
        "the exponent is i/d where 2i/d belongs, i counting the pairs": _from_angles(t / 10000 ** (i / d), d),
        "the exponent counts columns, not pairs: a sine and its cosine share one frequency": torch.where(
            torch.arange(d) % 2 == 0, (t / 10000 ** (torch.arange(d, dtype=F64) / d)).sin(),
            (t / 10000 ** (torch.arange(d, dtype=F64) / d)).cos()),
        "the exponent is twice too large; 2i is the column, and it is divided by d once":
            _from_angles(t / 10000 ** (4 * i / d), d),
        "the angle is multiplied by 10000^(2i/d), and division is right": _from_angles(t * 10000 ** (2 * i / d), d),
        "the base is 1000": _table(n, d, base=1000.0),
        "the base is 100": _table(n, d, base=100.0),
        "the exponent runs to 1 (division by d - 1 or by the last pair)":
            _from_angles(t / 10000 ** (i / max((d + 1) // 2 - 1, 1)), d),
        "the exponent is divided by d - 1 where d belongs": _from_angles(t / 10000 ** (2 * i / max(d - 1, 1)), d),
        "the exponent is divided by d + 1 where d belongs": _from_angles(t / 10000 ** (2 * i / (d + 1)), d),
        "the table is transposed": interleaved.T if n == d else torch.zeros(n, d),
        "only sines": _from_angles(right, d).clone().index_copy_(1, torch.arange(1, d, 2), sines[:, : d // 2]),
    }


def _compare(got, n, d, what):
    """Against the formula; a table that was built in float32 is right to a few 1e-7 times the position."""
    got = tensor(got, what, (n, d))
    check(got.isfinite().all(), f"{what} is not finite")
    expected, room = _table(n, d), {"rtol": 0.0, "atol": 2e-6 + 1e-6 * n, "dtype": False}
    try:
        same(got, expected, what, **room)
    except Wrong:
        for cause, value in _causes(n, d).items():  # a float32 answer is near its cause, not at it
            near = got.to(F64) - value if value.shape == got.shape else torch.ones(1)
            if near.abs().max() < room["atol"] + 1e-5:
                same_or_because(value, expected, what, {cause: value}, **room)
        raise


@pytest.mark.weight(3)
def test_values(sinusoidal_encoding, rng):
    """Row t holds sines and cosines of t / 10000^(2i/d), in turn, with positions from 0."""
    for n, d in ((7, 6), (5, 8), (12, 2), (3, 16), (10, 10)):
        _compare(sinusoidal_encoding(n, d), n, d, f"sinusoidal_encoding({n}, {d})")


@pytest.mark.weight(2)
def test_odd_widths(sinusoidal_encoding):
    """An odd width is the same formula, and ends with a sine."""
    for n, d in ((6, 5), (9, 7), (4, 3), (5, 1), (6, 11)):
        _compare(sinusoidal_encoding(n, d), n, d, f"sinusoidal_encoding({n}, {d})")


def test_shape_and_dtype(sinusoidal_encoding):
    """The table is [n, d] in the default dtype, also for one position and for one pair of columns."""
    for n, d in ((1, 6), (1, 2), (8, 2), (4, 7), (300, 4)):
        got = tensor(sinusoidal_encoding(n, d), f"sinusoidal_encoding({n}, {d})", (n, d))
        check(got.dtype == torch.float32, f"the table is {str(got.dtype).removeprefix('torch.')}, and the default "
              "dtype is float32")
        check(got.abs().max() <= 1 + 1e-6, "an entry is larger than 1")


def test_many_positions(sinusoidal_encoding, rng):
    """Far positions and wide tables are right too: n and d have no limit."""
    for n, d in ((512, 12), (int(torch.randint(5500, 6500, (1,), generator=rng)), 4), (40, 512)):
        got = tensor(sinusoidal_encoding(n, d), f"sinusoidal_encoding({n}, {d})", (n, d))
        for t in (n // 5, n // 2, n - 2, n - 1):
            same(got[t], _at(t, d), f"row {t} of sinusoidal_encoding({n}, {d})", rtol=0, atol=1e-3 + 1e-6 * n,
                 dtype=False)


def test_other_default_dtype(sinusoidal_encoding, shift_matrix, in_box):
    """Table and matrix come in the default dtype of the moment, float64 too, also after a call in float32."""
    for told, function, args, expected in (("the table", sinusoidal_encoding, (6, 5), _table(6, 5)),
                                           ("the matrix", shift_matrix, (3, 6), _turns(3, 6))):
        for dtype in (torch.float32, F64, torch.float32):
            got = tensor(in_box(call_with_default_dtype, function, dtype, *args), told, expected.shape)
            check(got.dtype == dtype, f"{told} is {str(got.dtype).removeprefix('torch.')} while the default dtype is "
                  f"{str(dtype).removeprefix('torch.')}")
            same(got, expected, told, rtol=0, atol=1e-4, dtype=False)


def test_every_row_has_one_length(sinusoidal_encoding):
    """A row does not depend on how many there are, and each pair of columns lies on the unit circle."""
    long, short = sinusoidal_encoding(20, 8), sinusoidal_encoding(6, 8)
    tensor(long, "the table", (20, 8))
    same(short, long[:6], "sinusoidal_encoding(6, 8), against the first rows of sinusoidal_encoding(20, 8)", atol=1e-6)
    circles = long.to(F64).unflatten(-1, (4, 2)).square().sum(-1)
    same(circles, torch.ones(20, 4, dtype=F64), "sine squared plus cosine squared, pair by pair", rtol=0, atol=1e-5)
    check((long[0, ::2].abs() < 1e-6).all(), "position 0 has a sine that is not 0")


def _shift(shift_matrix, offset, d):
    M = tensor(shift_matrix(offset, d), f"shift_matrix({offset}, {d})", (d, d))
    check(M.is_floating_point() and M.isfinite().all(), f"shift_matrix({offset}, {d}) is not a finite real matrix")
    return M.to(F64)


def _turns(offset, d):
    """The matrix by its formula: along the diagonal, one turn for each pair."""
    angle = offset * 10000 ** (-torch.arange(0, d, 2, dtype=F64) / d)
    rows = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], -1).reshape(-1, 2, 2)
    return torch.block_diag(*rows)


def _moves(M, offset, d, positions, atol):
    """`Wrong` unless M PE(t) = PE(t + offset) for every t in positions, with the likely cause."""
    for t in positions:
        row, expected = _at(t, d), _at(t + offset, d)
        got = M @ row
        if (got - expected).abs().max() <= atol:
            continue
        if (M.T @ row - expected).abs().max() <= atol:
            told = "likely cause: M is the transpose of what is asked for and turns the other way; PE(t) is a column"
        elif (got - row).abs().max() <= atol:
            told = "likely cause: your matrix is the identity"
        else:
            half = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
            other = torch.empty_like(row)
            other[half] = M @ row[half]
            ordered = (other - expected).abs().max() <= atol
            told = ("likely cause: your matrix takes all sines in front of all cosines; they take turns" if ordered
                    else "a pair (sin, cos) turns by offset times its own frequency")
        same(got, expected, f"M PE({t}) for offset {offset} and d = {d} ({told}), against PE({t + offset})",
             rtol=0, atol=atol)


def _at(t, d):
    return torch.tensor([_entry(t, c, d) for c in range(d)], dtype=F64)


@pytest.mark.weight(3)
def test_shifts(shift_matrix):
    """One matrix takes PE(t) to PE(t + offset) for every t."""
    for offset, d in ((1, 2), (1, 6), (3, 8), (7, 4), (5, 12)):
        _moves(_shift(shift_matrix, offset, d), offset, d, range(0, 40, 3), 1e-4)


@pytest.mark.weight(2)
def test_shift_back(shift_matrix):
    """A negative offset goes back, and no offset is the identity."""
    for offset, d in ((-1, 6), (-4, 8), (-10, 4)):
        M = _shift(shift_matrix, offset, d)
        check((M - _turns(-offset, d)).abs().max() > 1e-4 or
              (_shift(shift_matrix, -offset, d) - M).abs().max() > 1e-4,
              f"shift_matrix({offset}, {d}) is the same as shift_matrix({-offset}, {d}): the sign of offset is lost")
        _moves(M, offset, d, range(-offset, 40, 3), 1e-4)
    same(_shift(shift_matrix, 0, 6), torch.eye(6, dtype=F64), "shift_matrix(0, 6)", rtol=0, atol=1e-5)


def test_far_shift(shift_matrix):
    """Large offsets, and positions far away."""
    for offset, d in ((100, 6), (1000, 8), (-500, 4)):
        _moves(_shift(shift_matrix, offset, d), offset, d, (max(0, -offset), 700, 5000), 2e-3)


def test_wide_matrices(shift_matrix, rng):
    """Wide matrices are right in every entry: slow pairs hardly turn, so a fit to some positions does not find them."""
    for d in (32, 64, 128):
        offset = int(torch.randint(1, 30, (1,), generator=rng))
        same(_shift(shift_matrix, offset, d), _turns(offset, d), f"shift_matrix({offset}, {d}), against the turns of "
             "its pairs (it is worked out, not fitted)", rtol=0, atol=1e-3)
        _moves(_shift(shift_matrix, -offset, d), -offset, d, (offset, 50), 1e-3)


def test_shifts_add_up(shift_matrix):
    """A shift by 3 and then by 4 is a shift by 7, and a shift keeps lengths."""
    three, four, seven = (_shift(shift_matrix, offset, 8) for offset in (3, 4, 7))
    same(three @ four, seven, "shift_matrix(3, 8) @ shift_matrix(4, 8), against shift_matrix(7, 8)", rtol=0, atol=1e-3)
    same(three.T @ three, torch.eye(8, dtype=F64), "M^T M (a turn keeps lengths)", rtol=0, atol=1e-3)
    _moves(seven, 7, 8, range(10), 1e-4)


def test_shift_of_your_own_table(sinusoidal_encoding, shift_matrix):
    """The matrix fits your own table, row by row."""
    table = tensor(sinusoidal_encoding(15, 6), "the table", (15, 6)).to(F64)
    M = _shift(shift_matrix, 4, 6)
    same(table[:-4] @ M.T, table[4:], "M PE(t) for your own PE and offset 4", rtol=0, atol=1e-4)
    check((table[1:] - table[:-1]).abs().max() > 0.1, "every position has the same row")
