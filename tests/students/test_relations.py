"""How wrong numbers follow from the right ones: told where it is certain, and nowhere else."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.checking.compare import Wrong, same, same_as_yours
from course_utils.checking.relations import relation

rng = np.random.default_rng(0)
RIGHT = rng.normal(size=(2, 4, 5))
SQUARE = rng.normal(size=(2, 4, 4))
SOFT = np.exp(RIGHT) / np.exp(RIGHT).sum(-1, keepdims=True)


def told(got, expected, **how):
    with pytest.raises(Wrong) as caught:
        same(got, expected, "the output", **how)
    assert not caught.value.relation or caught.value.message.endswith(f". {caught.value.relation}")
    return caught.value.relation


def changed(values, place, by):
    values = values.copy()
    values[place] = by(values[place])
    return values


@pytest.mark.parametrize(
    ("got", "expected", "sentence"),
    [
        (2 * RIGHT, RIGHT, "Yours is 2 times the expected one everywhere"),
        (-RIGHT, RIGHT, "Yours has the other sign everywhere"),
        (-0.5 * RIGHT, RIGHT, "Yours is half of the expected one everywhere, with the other sign"),
        (RIGHT / 5**0.5, RIGHT, "divided by the square root of the length of the last axis"),
        (RIGHT * 0.37, RIGHT, "one factor, the same everywhere"),
        (RIGHT + 0.5, RIGHT, "larger than the expected one by 0.5 everywhere"),
        (1 - SOFT, SOFT, "Yours is 1 minus the expected one, everywhere"),
        (SOFT**2, SOFT, "the square of the expected one"),
        (np.log(SOFT), SOFT, "the logarithm of the expected one"),
        (0 * RIGHT, RIGHT, "All of yours are 0"),
        (np.rint(10 * RIGHT), 10 * RIGHT, "rounded to whole ones"),
        ((RIGHT * (1 + 3e-7)).astype(np.float32).astype(np.float64), RIGHT, "float32 numbers"),
        (SQUARE.swapaxes(1, 2), SQUARE, "transposed: axes 1 and 2 are swapped"),
        (SQUARE.swapaxes(1, 2) > 0, SQUARE > 0, "transposed: axes 1 and 2 are swapped"),
        (RIGHT[:, ::-1], RIGHT, "in reverse along axis 1"),
        (np.roll(RIGHT, 1, 1), RIGHT, "one place later along axis 1, around the end"),
        (np.concatenate([0 * RIGHT[:, :1], RIGHT[:, :-1]], 1), RIGHT, "one place later along axis 1"),
        (RIGHT[:, [0, 2, 1, 3]], RIGHT, "in another order along axis 1"),
        (RIGHT.swapaxes(1, 2).reshape(RIGHT.shape), RIGHT, "a reshape where axes must be transposed"),
        (
            RIGHT[:1].repeat(2, 0),
            RIGHT,
            "At every place of the first axis you have what is expected at its first place",
        ),
        (
            np.exp(RIGHT) / np.exp(RIGHT).sum(1, keepdims=True),
            SOFT,
            "sum to 1 over axis 1, the expected ones over the last",
        ),
        (SOFT**2 / (SOFT**2).sum(-1, keepdims=True), SOFT, "softmax of scores that are larger"),
        (np.exp(RIGHT), SOFT, "Along the last axis yours is as expected up to a factor"),
        (RIGHT, SOFT, "The expected ones are a softmax over the last axis of yours"),
        (RIGHT + RIGHT[0, 0], RIGHT, "an added number that depends on the place along the last axis alone"),
        (RIGHT * RIGHT[0, :, :1], RIGHT, "a factor that depends on the place along axis 1 alone"),
        (RIGHT * SQUARE[:, :, :1] + SQUARE[:, :, 1:2], RIGHT, "another mean or another spread"),
        (np.cumsum(RIGHT, 1), RIGHT, "running sums of the expected ones along axis 1"),
        (changed(RIGHT, np.s_[:, -1], np.cos), RIGHT, "differs only at the last place of axis 1"),
        (changed(RIGHT, np.s_[1], np.negative), RIGHT, "there yours has the other sign"),
        (
            np.where(np.tril(SQUARE), np.tril(SQUARE), 1e-3),
            np.tril(SQUARE),
            "differs exactly above the diagonal",
        ),
        (np.where(RIGHT > 0, RIGHT, -1.0), np.maximum(RIGHT, 0), "differs exactly where the expected ones are 0"),
        (~(RIGHT > 0), RIGHT > 0, "True and False are swapped everywhere"),
        (RIGHT > 1, RIGHT > 0, "Yours is True only where it should be"),
        (changed(RIGHT, np.s_[:, 0], lambda x: x * np.nan), RIGHT, "NaN only at the first place of axis 1"),
        (RIGHT.swapaxes(1, 2), RIGHT, "the axes are in another order"),
        (RIGHT[:, :, None], RIGHT, "an axis of length 1"),
        (RIGHT.sum(1), RIGHT, "The second axis is missing"),
        ([3, 2, 1], [1, 2, 3], "Yours are the expected ones in reverse"),
        ([2.5, 4.25, 6.0, 0.2], [1.25, 2.125, 3.0, 0.1], "Yours is 2 times the expected one everywhere"),
        (["a", "b"], ["a", "b", "c"], "Only the last one is missing"),
        ({1, 2}, {1, 2, 3}, "some are missing"),
        ("GELU", "gelu", "capital letters only"),
        (-1.234, 1.234, "It is -1 times the expected one"),
    ],
)
def test_a_relation_is_found_and_said_in_a_sentence(got, expected, sentence):
    assert sentence in told(got, expected)
    if isinstance(expected, np.ndarray):
        assert sentence in told(torch.tensor(np.ascontiguousarray(got)), torch.tensor(expected))


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (2.0, 1.0),
        (3.5, 1.3),
        (np.array([2.0, 4.0]), np.array([1.0, 2.0])),
        (np.array([0.5, 0.25]), np.array([0.25, 0.5])),
        (np.arange(20.0, 32.0), np.arange(2.0, 14.0)),
        (np.array([[1, 0], [0, 1]]), np.array([[0, 1], [1, 0]])),
        (np.array([True, False]), np.array([False, True])),
    ],
)
def test_few_or_simple_numbers_fit_by_chance_and_nothing_is_said(got, expected):
    assert told(got, expected) in ("", "Yours is the identity matrix")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(3,), (7,), (2, 3), (3, 3), (1, 4), (2, 3, 4), (2, 2, 2, 2)]))
def test_numbers_that_have_nothing_to_do_with_the_right_ones_have_no_relation_to_them(seed, shape):
    draw = np.random.default_rng(seed)
    have, want = draw.normal(size=shape), draw.normal(size=shape)
    assert relation(have, want, 1e-7, 1e-9) == ""


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_a_relation_that_one_number_breaks_is_not_told_as_if_it_held_everywhere(seed):
    draw = np.random.default_rng(seed)
    want = draw.normal(size=(3, 4))
    have = 2 * want
    have[draw.integers(3), draw.integers(4)] += 0.1
    assert "everywhere" not in relation(have, want, 1e-7, 1e-9)


def test_relations_hold_no_number_of_the_values():
    for have in (RIGHT * 0.123456, RIGHT + 0.123456, 0.77 * RIGHT + 0.123456):
        assert not any(digit in relation(have, RIGHT, 1e-7, 1e-9) for digit in "123456789")


def test_of_two_outputs_of_the_answer_itself_none_is_called_the_right_one():
    with pytest.raises(Wrong) as caught:
        same_as_yours(2 * RIGHT, RIGHT, "the output", "without the padding")
    assert "expected" not in caught.value.message and not caught.value.relation


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, -1e300, 1e-300, 2.5, np.inf]), min_size=4, max_size=4), st.integers(0, 9))
def test_odd_numbers_and_shapes_are_looked_at_without_an_error_or_a_warning(values, seed):
    have, want = np.array(values), np.random.default_rng(seed).normal(size=4)
    for shape in ((4,), (1, 4), (2, 2), (2, 1, 2), (1, 1, 2, 2, 1)):
        with np.errstate(all="raise"):
            relation(have.reshape(shape), want.reshape(shape), 1e-7, 1e-9)
            relation(want.reshape(shape), have.reshape(shape), 1e-7, 1e-9)


def test_a_loose_comparison_lets_no_rule_be_told():
    assert told(2 * RIGHT, RIGHT, rtol=0.05) == told(2 * RIGHT, RIGHT, atol=0.1) == ""


def test_large_arrays_are_not_looked_through():
    large = rng.normal(size=(200, 200))
    assert told(2 * large, large) == ""
