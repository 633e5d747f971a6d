"""Lines that must be equal, and the expectations that they are held against."""

import math

import pytest
import sympy
import torch

from autograder.suites.lines import assert_lines
from course_utils.checking.compare import Wrong
from course_utils.notebook.derivations import compare_lines

F64 = torch.float64


def test_lines_that_agree_may_be_numbers_tensors_or_sympy():
    assert compare_lines([0.5, torch.tensor(0.5), sympy.Rational(1, 2), sympy.sin(sympy.pi / 6)])


def test_the_first_broken_line_is_named_with_both_values():
    report = compare_lines([9.037, 9.037, 31.23, 31.23])
    assert not report and report.broken == 2
    assert str(report) == "line 2 is the first that breaks: line 1 gives 9.037, line 2 gives 31.23"


def test_lines_can_have_names():
    assert "expanded gives 2" in str(compare_lines([1, 2], names=["definition", "expanded"]))


def test_matrices_are_compared_entry_by_entry_and_the_worst_is_shown():
    X = torch.eye(3, dtype=F64)
    Y = X.clone()
    Y[1, 2] = 0.25
    assert str(compare_lines([X, X, Y])).endswith("line 1 gives 0 at index [1, 2], line 2 gives 0.25")
    assert "shape [3, 3], line 1 has shape [9]" in str(compare_lines([X, X.flatten()]))


@pytest.mark.parametrize("line", [None, "2", [1.0], sympy.Symbol("x"), True])
def test_a_line_that_is_no_number_breaks(line):
    assert "expected a number or a tensor" in str(compare_lines([1.0, line]))


def test_a_line_with_nan_breaks_even_when_all_have_it():
    assert compare_lines([math.nan, math.nan]).broken == 0


def test_float32_lines_are_compared_more_coarsely():
    a = torch.tensor(1.0)
    assert compare_lines([a, a + 1e-5])
    assert not compare_lines([a.double(), a.double() + 1e-5])


def test_lines_must_begin_at_the_definition():
    assert_lines([4.0, 4.0, 4.0], 4.0, "the variance")
    words = "the variance: line 0 is the first that breaks: the definition gives 5, line 0 gives 4"
    with pytest.raises(Wrong, match=words):
        assert_lines([4.0, 4.0, 4.0], 5.0, "the variance")


def test_a_broken_line_after_a_right_start_is_named_by_its_index():
    with pytest.raises(Wrong, match="line 2 is the first that breaks: line 1 gives 9.037, line 2 gives 31.23"):
        assert_lines([9.037, 9.037, 31.23], 9.037, "the variance")


def test_a_derivation_needs_enough_lines_in_a_list():
    with pytest.raises(Wrong, match="2 lines, expected at least 3"):
        assert_lines([1.0, 1.0], 1.0, "the variance")
    with pytest.raises(Wrong, match="expected a list of lines, got a Tensor"):
        assert_lines(torch.ones(3), 1.0, "the variance")
