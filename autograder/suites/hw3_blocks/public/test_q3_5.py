"""Public checks of q3_5: sinusoidal_encoding and shift_matrix."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_default_dtype

F64 = torch.float64


def test_worked_numbers(sinusoidal_encoding):
    """At d = 4 position t is (sin t, cos t, sin t/100, cos t/100), and positions count from 0."""
    # keeps: table, from-zero
    got = tensor(sinusoidal_encoding(3, 4), "the table", (3, 4))
    check(got.dtype == torch.get_default_dtype(), f"the table is {got.dtype}, and the default dtype is asked for")
    rows = [[math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)] for t in range(3)]
    same(got[0], torch.tensor([0.0, 1.0, 0.0, 1.0]), "row 0 of the table", atol=1e-5, dtype=False)
    same(got, torch.tensor(rows), "the table", atol=1e-5, dtype=False)


def test_odd_width(sinusoidal_encoding):
    """An odd width ends with a sine: at d = 5 the columns are sin, cos, sin, cos, sin."""
    # keeps: odd-width
    got = tensor(sinusoidal_encoding(6, 5), "the table", (6, 5))
    same(got[:, 0], torch.arange(6.0).sin(), "column 0", atol=1e-5, dtype=False)
    same(got[:, 4], (torch.arange(6.0) / 10000**0.8).sin(), "column 4, sin(t / 10000^(4/5))", atol=1e-5, dtype=False)
    same(got[0], torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0]), "row 0 of the table", atol=1e-5, dtype=False)


def test_shift(shift_matrix, sinusoidal_encoding):
    """shift_matrix(3, 6) takes row t of your table to row t + 3, the same matrix for every t."""
    # keeps: shift
    table = tensor(sinusoidal_encoding(10, 6), "the table", (10, 6)).to(F64)
    M = tensor(shift_matrix(3, 6), "the matrix", (6, 6)).to(F64)
    check(M.isfinite().all(), "the matrix is not finite")
    for t in range(7):
        same(M @ table[t], table[t + 3], f"M PE({t}), against PE({t + 3})", rtol=0, atol=1e-4)
    same(shift_matrix(0, 6), torch.eye(6), "shift_matrix(0, 6), the identity", rtol=0, atol=1e-5, dtype=False)


def test_steps_forth_and_back(shift_matrix, sinusoidal_encoding):
    """A negative offset steps back; the matrix is exact in wide tables too, where the slow pairs hardly turn."""
    # keeps: negative-offset, exact
    for offset, d in ((-2, 6), (5, 6), (40, 64), (-7, 64)):
        M = tensor(shift_matrix(offset, d), "the matrix", (d, d)).to(F64)
        angle = offset * 10000.0 ** (-torch.arange(0, d, 2, dtype=F64) / d)
        turns = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], -1).reshape(-1, 2, 2)
        expected = torch.block_diag(*turns)
        same(M, expected, f"shift_matrix({offset}, {d})", rtol=0, atol=1e-4)


def test_default_dtype(shift_matrix, sinusoidal_encoding):
    """Both results have torch's default dtype, whatever it is at the time."""
    # keeps: default-dtype
    for name, f, size in (("sinusoidal_encoding(3, 4)", sinusoidal_encoding, 3), ("shift_matrix(3, "
                                                                                  "4)", shift_matrix, 3)):
        for dtype in (torch.float64, torch.float32):
            got = run_beside(call_with_default_dtype, f, dtype, size, 4)
            check(got.dtype == dtype, f"{name} is {got.dtype} while the default dtype is {dtype}")


def test_all_digits(shift_matrix, sinusoidal_encoding):
    """While the default dtype is float64, table and matrix are right to twelve digits: no float32 on the way."""
    # keeps: exact, default-dtype
    angle = torch.arange(50, dtype=F64)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2, dtype=F64) / 8)
    table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    got = run_beside(call_with_default_dtype, sinusoidal_encoding, F64, 50, 8)
    same(tensor(got, "the table", (50, 8), F64), table, "the table in float64 (is an angle made in float32?)", rtol=0,
         atol=1e-11)
    M = tensor(run_beside(call_with_default_dtype, shift_matrix, F64, 7, 8), "the matrix", (8, 8), F64)
    same(M @ table[20], table[27], "M PE(20), against PE(27), in float64", rtol=0, atol=1e-11)


def probe_double_digits(shift_matrix, sinusoidal_encoding):
    made = (run_beside(call_with_default_dtype, f, F64, 50, 8).double() for f in (sinusoidal_encoding, shift_matrix))
    return [bool((x - x.float()).abs().max() > 0) for x in made]  # float32 inside leaves no further digits


def probe_dtypes(shift_matrix, sinusoidal_encoding):
    return [str(run_beside(call_with_default_dtype, f, dtype, 3, 4).dtype)
            for f in (sinusoidal_encoding, shift_matrix) for dtype in (torch.float64, torch.float32)]


def probe_table(sinusoidal_encoding):
    return sinusoidal_encoding(7, 6)


def probe_first_row(sinusoidal_encoding):
    return sinusoidal_encoding(5, 6)[0]


def probe_wide_table(sinusoidal_encoding):
    return sinusoidal_encoding(4, 16)


def probe_longer_than_wide(sinusoidal_encoding):
    return sinusoidal_encoding(9, 2)


def probe_odd_width(sinusoidal_encoding):
    return sinusoidal_encoding(6, 5)


def probe_three_columns(sinusoidal_encoding):
    return sinusoidal_encoding(6, 3)


def probe_one_column(sinusoidal_encoding):
    return sinusoidal_encoding(6, 1)


def probe_one_position(sinusoidal_encoding):
    return sinusoidal_encoding(1, 6)


def probe_dtype(sinusoidal_encoding):
    return str(sinusoidal_encoding(3, 4).dtype)


def probe_shape(sinusoidal_encoding):
    return list(sinusoidal_encoding(7, 6).shape)


def probe_shift(shift_matrix):
    return shift_matrix(3, 6)


def probe_shift_back(shift_matrix):
    return shift_matrix(-2, 6)


def probe_no_shift(shift_matrix):
    return shift_matrix(0, 6)


def probe_shift_two_columns(shift_matrix):
    return shift_matrix(1, 2)


def probe_far_shift(shift_matrix):
    return shift_matrix(100, 4)


def probe_shift_moves_the_table(shift_matrix):
    angle = torch.arange(9.0, dtype=F64)[:, None] / 10000 ** (torch.arange(0, 6, 2, dtype=F64) / 6)
    table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)  # [9, 6]
    M = shift_matrix(2, 6).to(F64)
    moved = {"forward": table[2:], "back": table[:-2]}
    from_row = {"forward": table[:-2], "back": table[2:]}
    return [bool((from_row[way] @ A - moved[way]).abs().max() < 1e-4) for way in moved for A in (M.T, M)]


def probe_other_default_dtype(sinusoidal_encoding, shift_matrix):
    return [str(run_beside(call_with_default_dtype, f, F64, 3, 4).dtype) for f in (sinusoidal_encoding, shift_matrix)]


def probe_wide_shift(shift_matrix):
    M = shift_matrix(5, 64).to(F64)
    return bool((M.T @ M - torch.eye(64, dtype=F64)).abs().max() < 1e-2)


def probe_sign_of_offset_counts(shift_matrix):
    return bool((shift_matrix(2, 6) - shift_matrix(-2, 6)).abs().max() > 1e-4)
