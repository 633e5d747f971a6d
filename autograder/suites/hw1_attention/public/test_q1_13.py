"""Public checks of q1_13: first_false_line."""

import torch

from course_utils.checking.compare import check, number
from course_utils.hw1.spot_the_error import DERIVATION

F64 = torch.float64
MU, SIGMA = torch.tensor([1.0, -2.0, 0.5], dtype=F64), 0.5


def _answer(first_false_line):
    got = first_false_line()
    check(isinstance(got, (tuple, list)) and len(got) == 2, "first_false_line returns the pair (index, repaired)")
    check(callable(got[1]), "the second part is the repaired line, a function of (mu, sigma)")
    return got


def test_form(first_false_line):
    """The answer is an index of a line, counted from 0, and a function of (mu, sigma) that gives a number."""
    index, repaired = _answer(first_false_line)
    index = number(index, "the index")
    check(index in range(len(DERIVATION)), f"the index is {index:g}, and the lines are 0 to {len(DERIVATION) - 1}")
    number(repaired(MU, SIGMA), "the repaired line")


def test_repair_fits_the_line_before(first_false_line):
    """The repaired line equals the line before the one that you call false."""
    index, repaired = _answer(first_false_line)
    index = int(number(index, "the index"))
    check(index >= 1, "line 0 is where the derivation starts from: it is true")
    before, got = number(DERIVATION[index - 1](MU, SIGMA), "the line before"), number(repaired(MU, SIGMA), "your line")
    check(abs(got - before) <= 1e-6 * abs(before), f"line {index - 1} gives {before:.6g}, your repaired line {got:.6g}")


def _mu(d):
    return torch.randn(d, generator=torch.Generator().manual_seed(131), dtype=F64) + 0.3


def probe_index(first_false_line):
    return int(number(_answer(first_false_line)[0], "the index"))


def probe_repaired(first_false_line):
    return number(_answer(first_false_line)[1](_mu(4), 0.7), "the repaired line")


def probe_repaired_wide_sigma(first_false_line):
    return number(_answer(first_false_line)[1](_mu(3), 1.9), "the repaired line")


def probe_repaired_centred(first_false_line):
    return number(_answer(first_false_line)[1](0 * _mu(5), 0.6), "the repaired line")


def probe_is_still_the_false_line(first_false_line):
    got = number(_answer(first_false_line)[1](_mu(4), 0.7), "the repaired line")
    return abs(got - float(DERIVATION[3](_mu(4), 0.7))) < 1e-9
