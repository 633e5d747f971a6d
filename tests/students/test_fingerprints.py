"""Prints of outputs, and the mistakes that are recognised by them."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from course_utils.checking import NotAnswered
from course_utils.fingerprints import Mistake, diagnose, fingerprint, matches, precision, run_probe

FINITE = st.floats(-1e6, 1e6)
ARRAYS = hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=FINITE)


def same_print(a, b):
    return matches(fingerprint(a), fingerprint(b))


@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats()))
def test_every_array_has_a_print_that_json_carries_and_that_matches_itself(x):
    once = fingerprint(torch.from_numpy(x))
    assert matches(json.loads(json.dumps(once, allow_nan=False)), fingerprint(x.copy()))


@given(ARRAYS)
def test_float32_and_float64_print_alike(x):
    assert same_print(torch.from_numpy(x), torch.from_numpy(x).float())


@given(ARRAYS, st.integers(0, 10**6), st.floats(0.01, 10))
def test_moving_one_entry_changes_the_print(x, where, by):
    y = x.copy()
    y.flat[where % y.size] += by * (1 + np.linalg.norm(x))
    assert not same_print(x, y)


@given(hnp.arrays(np.float64, st.integers(2, 8), elements=st.floats(-10, 10)), st.randoms())
@settings(max_examples=200)
def test_the_same_numbers_in_another_order_print_differently(x, random):
    order = list(range(len(x)))
    random.shuffle(order)
    assume(np.linalg.norm(x[order] - x) > 0.1)
    assert not same_print(x, x[order])


def test_another_shape_is_another_print():
    x = torch.arange(6.0)
    assert not same_print(x.reshape(2, 3), x.reshape(3, 2))
    assert not same_print(torch.ones(1), torch.tensor(1.0))


def test_a_number_prints_like_a_tensor_without_axes_and_a_list_like_a_tuple():
    assert same_print(2.5, torch.tensor(2.5))
    assert same_print(np.float32(2), 2)
    assert same_print([1.0, "dot"], (1, "dot"))


def test_nan_and_both_infinities_are_told_apart_and_huge_fills_count_as_infinite():
    x = [torch.tensor([1.0, value], dtype=torch.float64) for value in (math.nan, math.inf, -math.inf, 0.0)]
    assert all(same_print(a, b) == (a is b) for a in x for b in x)
    assert same_print(torch.tensor([torch.finfo(torch.float32).min]), torch.tensor([-math.inf]))


def test_words_flags_and_nothing_are_compared_exactly():
    values = ["dot", "general", True, False, None, 1.0, {"a": 1}, {"b": 1}, {"causal"}, [True], len]
    assert all(same_print(a, b) == (i == j) for i, a in enumerate(values) for j, b in enumerate(values))


def test_gradients_do_not_matter_to_a_print():
    assert same_print(torch.ones(3, requires_grad=True), torch.ones(3))


def test_rounding_below_a_billionth_is_not_a_difference():
    assert same_print(torch.zeros(3, dtype=torch.float64), torch.full((3,), 1e-12, dtype=torch.float64))


def test_a_probe_gets_what_it_names_and_an_error_is_printed_by_its_type():
    def probe(attention, scale):
        return attention(scale)

    assert run_probe(probe, {"attention": lambda x: x + 1, "scale": 2}.get) == fingerprint(3)
    assert run_probe(probe, {"attention": lambda x: x[0], "scale": 2}.get) == {"error": "TypeError"}


def test_a_probe_of_an_unanswered_question_raises_not_answered():
    def stub(x):
        raise NotImplementedError("q1_1: your code")

    def refuse(x):
        raise NotAnswered("q1_1: nothing yet")

    for answer in (stub, refuse, None):
        with pytest.raises(NotAnswered):
            run_probe(lambda f: f(1), {"f": answer}.get)


def mistake(label, **prints):
    return Mistake(label, f"hint for {label}", {name: fingerprint(value) for name, value in prints.items()})


def diagnosed(catalogue, **outputs):
    found = diagnose({name: fingerprint(value) for name, value in outputs.items()}, catalogue)
    return found.label if found else None


def test_the_mistake_with_most_matching_prints_is_named():
    catalogue = [mistake("no-scale", plain=1.0), mistake("no-scale-no-mask", plain=1.0, masked=2.0)]
    assert diagnosed(catalogue, plain=1.0, masked=2.0) == "no-scale-no-mask"


def test_among_equals_the_mistake_with_fewest_prints_that_do_not_match_is_named():
    catalogue = [mistake("broad", plain=1.0, masked=2.0), mistake("narrow", plain=1.0)]
    assert diagnosed(catalogue, plain=1.0, masked=7.0) == "narrow"


def test_a_mistake_that_fits_at_one_place_and_not_at_most_is_not_named():
    catalogue = [mistake("no-scale", plain=1.0, masked=2.0, heads=3.0)]
    assert diagnosed(catalogue, plain=1.0, masked=7.0, heads=7.0) is None
    assert diagnosed(catalogue, plain=1.0, masked=2.0, heads=7.0) == "no-scale"
    many = {f"place {i}": float(i) for i in range(12)}
    assert diagnosed([mistake("no-scale", **many)], **many | {f"place {i}": 0.5 for i in range(4, 12)}) == "no-scale"
    assert diagnosed([mistake("no-scale", **many)], **many | {f"place {i}": 0.5 for i in range(3, 12)}) is None
    assert diagnosed(catalogue, plain=1.0) == "no-scale"  # the other places gave no answer, and contradict nothing


def test_precision_tells_rounding_from_a_wrong_result():
    errors = {"float64": 1e-15, "float32": 1e-7, "none": 0.3}
    assert {name: precision(torch.tensor([0.0, -size])) for name, size in errors.items()} == {n: n for n in errors}
    assert precision(torch.tensor([math.nan])) == "none"


def test_ties_go_to_the_first_of_the_catalogue():
    catalogue = [mistake("first", plain=1.0), mistake("second", plain=1.0)]
    assert diagnosed(catalogue, plain=1.0) == "first"


def test_ties_go_to_the_mistake_that_a_failed_case_has_named():
    catalogue = [mistake("first", plain=1.0), mistake("second", plain=1.0), mistake("worse", plain=1.0, masked=2.0)]
    outputs = {"plain": 1.0, "masked": 7.0}
    for named, found in ((["second"], "second"), (["worse"], "first"), (["first", "second"], "first")):
        best = diagnose({name: fingerprint(value) for name, value in outputs.items()}, catalogue, named)
        assert best.label == found


def test_nothing_is_named_where_nothing_matches():
    assert diagnosed([mistake("no-scale", plain=1.0)], plain=3.0) is None
    assert diagnosed([mistake("no-scale", plain=1.0)]) is None


def test_the_same_error_alone_names_only_a_mistake_that_does_nothing_else():
    error = RuntimeError("shapes")
    mixed, pure = mistake("mixed", plain=1.0, masked=error), mistake("pure", masked=error)
    assert diagnosed([mixed], plain=3.0, masked=error) is None
    assert diagnosed([mixed], plain=1.0, masked=error) == "mixed"
    assert diagnosed([mixed, pure], plain=3.0, masked=error) == "pure"
    assert diagnosed([pure], plain=error, masked=error) is None  # the known one gives the right value there
    assert diagnosed([pure], plain=ValueError("refused, as asked for"), masked=error) == "pure"
    assert diagnosed([mistake("pure", masked=error, plain=error)], plain=3.0, masked=error) is None


@pytest.mark.parametrize("value", [[0.0] * 100_000, [[0.0] * 100] * 100, {i: [0.0] * 100 for i in range(100)}])
def test_a_flood_of_numbers_has_no_print_of_each(value):
    assert set(fingerprint(value)) == {"type"}
