"""The comparisons that checks are made of, and the sentences that students read."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.checking.compare import NotAnswered, Wrong, check, number, same, same_as_yours, tensor


def message(action, *args, **kwargs):
    with pytest.raises(Wrong) as caught:
        action(*args, **kwargs)
    return str(caught.value)


def test_a_check_that_holds_says_nothing_and_one_that_does_not_raises_its_message_and_mistake():
    check(torch.tensor(True), "never seen")
    with pytest.raises(Wrong) as caught:
        check(torch.tensor(False), "rows do not sum to 1", mistake="softmax-over-queries")
    assert (str(caught.value), caught.value.mistake) == ("rows do not sum to 1", "softmax-over-queries")


def test_an_unanswered_question_knows_its_id():
    assert NotAnswered("q1_7: write attention").question == "q1_7"
    assert NotAnswered("nothing here").question == ""


def test_a_wrong_shape_is_named_before_anything_else():
    got = message(same, torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.float64), "the weights")
    assert got == "the weights have shape [2, 3], expected [3, 2]"


def test_a_wrong_dtype_is_named_and_can_be_ignored():
    got, expected = torch.zeros(2), torch.zeros(2, dtype=torch.float64)
    assert (
        message(same, got, expected, "the weights")
        == "the weights are float32, expected float64: results keep the input's dtype"
    )
    same(got, expected, "the weights", dtype=False)


def test_a_wrong_value_is_shown_with_its_index_and_what_was_expected():
    expected = torch.full((4, 5), 0.25, dtype=torch.float64)
    got = expected.clone()
    got[0, 2] = 0.5
    assert message(same, got, expected, "the weights") == (
        "the weights: at index [0, 2] you have 0.5, expected 0.25 (1 of 20 entries differs, largest difference 0.25)"
    )


def test_numbers_that_look_alike_are_shown_with_enough_digits():
    assert message(same, 1.00000123, 1.0, "dot_mean") == "dot_mean is 1.000001, expected 1"


def test_booleans_are_shown_as_booleans():
    got = message(same, torch.tensor([True, False]), torch.tensor([True, True]), "the mask")
    assert "you have False, expected True" in got


def test_nan_never_passes():
    nan = torch.tensor([0.0, math.nan])
    assert message(same, nan, torch.zeros(2), "the output") == "the output has NaN at index [1]"
    with pytest.raises(Wrong):
        same(nan, nan, "the output")
    assert message(number, math.nan, "the mean") == "the mean is NaN"


def test_an_infinity_equals_only_the_one_of_the_same_sign():
    same(math.inf, math.inf, "beta")
    same(torch.tensor([-math.inf, 1.0]), torch.tensor([-math.inf, 1.0]), "scores")
    for wrong in (-math.inf, 1e300):
        with pytest.raises(Wrong):
            same(wrong, math.inf, "beta")


@pytest.mark.parametrize("dtype, close, far", [(torch.float64, 1e-8, 1e-6), (torch.float32, 1e-5, 1e-3)])
def test_tolerance_follows_the_dtype(dtype, close, far):
    one = torch.ones(3, dtype=dtype)
    same(one + close, one, "x")
    with pytest.raises(Wrong):
        same(one + far, one, "x")
    same(one + far, one, "x", rtol=1e-2)


def test_integers_are_compared_exactly():
    same(torch.tensor([10**9]), torch.tensor([10**9]), "counts")
    with pytest.raises(Wrong):
        same(torch.tensor([10**9 + 1]), torch.tensor([10**9]), "counts")


@pytest.mark.parametrize("got", [3, 3.0, np.float64(3), np.array(3.0), torch.tensor(3.0), torch.tensor(3)])
def test_a_number_may_be_a_python_number_a_numpy_one_or_a_tensor_without_axes(got):
    assert number(got, "dot_mean") == 3.0
    same(got, 3.0, "dot_mean")


@pytest.mark.parametrize("got", [None, "3", [3.0], torch.ones(1), True, 1j])
def test_anything_else_is_not_a_number(got):
    assert "expected a number" in message(number, got, "dot_mean")


def test_none_asks_for_the_return():
    assert "is a `return` missing?" in message(same, None, torch.zeros(3), "the weights")
    assert "is a `return` missing?" in message(tensor, None, "the weights")


def test_a_tensor_is_checked_for_shape_and_dtype_and_numpy_is_accepted():
    assert tensor(np.ones((2, 3)), "weights", shape=(2, 3), dtype=torch.float64).shape == (2, 3)
    assert message(tensor, torch.ones(2), "the output", shape=(3,)) == "the output has shape [2], expected [3]"
    assert "float32, expected float64" in message(tensor, torch.ones(2), "x", dtype=torch.float64)
    assert message(tensor, [1.0], "the output") == "the output is a list of 1, expected a tensor"


def test_nested_answers_are_compared_piece_by_piece_and_the_piece_is_named():
    expected = {"padding": [torch.zeros(2), {"causal"}]}
    same({"padding": (torch.zeros(2), {"causal"})}, expected, "masks")
    assert message(same, {"padding": [torch.ones(2), {"causal"}]}, expected, "masks").startswith("masks['padding'][0]")
    assert "length 1, expected 2" in message(same, {"padding": [torch.zeros(2)]}, expected, "masks")
    assert "the keys 'pad', expected 'padding'" in message(same, {"pad": 1}, expected, "masks")
    assert "expected {'causal'}" in message(same, {"padding": [torch.zeros(2), set()]}, expected, "masks")


def test_strings_booleans_and_none_are_compared_exactly():
    same("dot", "dot", "kind")
    same(None, None, "nothing")
    same(torch.tensor(True), True, "flag")
    for got, expected in [("Dot", "dot"), (1, True), (None, False)]:
        with pytest.raises(Wrong):
            same(got, expected, "it")


def test_gradients_and_broadcasting_do_not_confuse_a_comparison():
    same(torch.ones(2, requires_grad=True), torch.ones(2), "x")
    with pytest.raises(Wrong):
        same(torch.ones(1, 2), torch.ones(2), "x")


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1), st.randoms())
def test_every_list_of_numbers_equals_itself_and_not_one_with_an_entry_moved(values, random):
    x = torch.tensor(values, dtype=torch.float64)
    same(x.clone(), x, "x")
    y = x.clone()
    i = random.randrange(len(values))
    y[i] = y[i] + 0.001 * (1 + y[i].abs()) if y[i].isfinite() else 0.0
    with pytest.raises(Wrong):
        same(y, x, "x")


def test_two_outputs_of_an_answer_are_compared_without_speaking_of_what_was_expected():
    same_as_yours(torch.ones(2), torch.ones(2), "the output", "without the padding")
    words = r"the output: at index \[1\] you have 3, and without the padding 1 \(1 of 2 entries differs"
    with pytest.raises(Wrong, match=words):
        same_as_yours(torch.tensor([1.0, 3.0]), torch.ones(2), "the output", "without the padding")
    with pytest.raises(Wrong, match=r"the output has shape \[3\], and for one sentence alone \[2\]"):
        same_as_yours(torch.ones(3), torch.ones(2), "the output", "for one sentence alone")
