"""A wrong value is reported with its cause only where it is exactly one known cause's value."""

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import Wrong

TINY = torch.tensor([1e-9, 2e-9], dtype=torch.float64)


def told(got, expected, causes):
    with pytest.raises(Wrong) as caught:
        same_or_because(got, expected, "the value", causes, rtol=1e-6, atol=1e-15)
    return caught.value.message.partition("Likely cause: ")[2]


def test_the_cause_whose_value_was_given_is_named():
    causes = {"not scaled": 2.0, "scaled twice": 0.5}
    assert told(2.0, 1.0, causes) == "not scaled."
    assert told(0.5, 1.0, causes) == "scaled twice."
    assert told(3.0, 1.0, causes) == ""


def test_tiny_numbers_are_told_apart():
    causes = {"doubled": 2 * TINY, "tripled": 3 * TINY}
    assert told(3 * TINY, TINY, causes) == "tripled."
    assert told(4 * TINY, TINY, causes) == ""


def test_rounding_of_small_entries_beside_large_ones_is_no_other_value():
    value = torch.tensor([1.0, 1e-9], dtype=torch.float64)
    assert told(value + 3e-9, 2 * value, {"not doubled": value}) == "not doubled."


def test_two_causes_of_one_value_are_both_kept_silent():
    assert told(2.0, 1.0, {"not scaled": 2.0, "added twice": 2.0}) == ""


def test_a_cause_that_gives_the_right_value_is_passed_over():
    assert told(2.0, 1.0, {"harmless here": 1.0, "not scaled": 2.0}) == "not scaled."
