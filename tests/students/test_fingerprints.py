"""Prints of outputs, and the mistakes that are recognised by them."""

import json
import math
import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from course_utils.checking.compare import NotAnswered
from course_utils.explain.fingerprints import FEW, fingerprint, matches, precision, run_probe
from course_utils.explain.naming import diagnose
from course_utils.explain.sealed_prints import (
    CELL,
    FIRST_LINE,
    Catalogue,
    Mistake,
    Unreadable,
    pack,
    place_of,
    read_catalogue,
    seal,
    unpack,
)

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
    sealed = {name: seal(fingerprint(value), place_of("q1_1", name)) for name, value in prints.items()}
    return Mistake(label, f"hint for {label}", sealed)


def diagnosed(catalogue, **outputs):
    found = diagnose({name: fingerprint(value) for name, value in outputs.items()}, catalogue)
    return found[0].mistake.label if found else None


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
        (best,) = diagnose({name: fingerprint(value) for name, value in outputs.items()}, catalogue, named)
        assert best.mistake.label == found


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


def failing(known, *checks):
    return Mistake(known.label, known.hint, known.prints, checks)


def all_diagnosed(catalogue, failed, **outputs):
    found = diagnose({name: fingerprint(value) for name, value in outputs.items()}, catalogue, failed=failed)
    return [(one.mistake.label, one.exact) for one in found]


def test_errors_rank_behind_values():
    error = KeyError("tanh")
    catalogue = [mistake("errs", a=error, b=error), mistake("drops-late", c=1.0)]
    assert diagnosed(catalogue, a=error, b=error, c=1.0) == "drops-late"


def test_a_mistake_that_fails_none_of_the_failed_checks_is_not_named():
    error = KeyError("tanh")
    names = failing(mistake("key-error", unknown=error), "test_unknown_activation")
    assert all_diagnosed([names], ["test_dropout"], unknown=error, dropped=3.0) == []
    assert all_diagnosed([names], ["test_unknown_activation"], unknown=error, dropped=3.0) == [("key-error", False)]
    assert all_diagnosed([failing(mistake("late", dropped=3.0), "test_dropout"), names],
                         ["test_dropout"], unknown=error, dropped=3.0) == [("late", True)]  # fmt: skip


def test_a_mistake_for_which_little_speaks_is_named_only_where_it_explains_half_of_what_failed():
    known = [failing(mistake("float32-inside", digits="float32"), "test_digits")]
    assert all_diagnosed(known, ["test_digits", "test_values"], digits="float32") == [("float32-inside", True)]
    failed = ["test_digits", "test_values", "test_masks"]
    assert all_diagnosed(known, failed, digits="float32") == []
    telling = [failing(mistake("no-scale", plain=1.0, heads=2.0), "test_digits")]
    assert all_diagnosed(telling, failed, plain=1.0, heads=2.0) == [("no-scale", True)]


def test_a_mistake_is_exact_where_all_of_its_own_values_are_the_students_and_no_error_alone_is():
    known = [failing(mistake("no-scale", plain=1.0, masked=2.0, heads=3.0), "test_plain")]
    assert all_diagnosed(known, ["test_plain"], plain=1.0, masked=2.0, heads=3.0) == [("no-scale", True)]
    assert all_diagnosed(known, ["test_plain"], plain=1.0, masked=2.0, heads=9.0) == [("no-scale", False)]
    assert all_diagnosed(known, ["test_plain"], plain=1.0, masked=2.0) == [("no-scale", False)]
    error = RuntimeError("shapes")
    assert all_diagnosed([mistake("crashes", plain=error)], ["test_plain"], plain=error) == [("crashes", False)]


def test_two_mistakes_are_named_where_neither_explains_all_and_each_is_exact_where_it_stands_alone():
    mean = failing(mistake("mean", mean=1.0, wide=2.0), "test_mean")
    scale = failing(mistake("scale", scale=3.0), "test_scale")
    outputs = {"mean": 1.0, "wide": 2.0, "scale": 3.0}
    assert all_diagnosed([mean, scale], ["test_mean", "test_scale"], **outputs) == [("mean", True), ("scale", True)]
    assert all_diagnosed([mean, scale], ["test_mean"], **outputs) == [("mean", True)]
    assert all_diagnosed([mean, scale], ["test_mean", "test_scale"], **outputs | {"wide": 9.0}) == [("scale", True)]


@pytest.mark.parametrize("value", [[0.0] * 100_000, [[0.0] * 100] * 100, {i: [0.0] * 100 for i in range(100)}])
def test_a_flood_of_numbers_has_no_print_of_each(value):
    assert set(fingerprint(value)) == {"type"}


# sealed prints


def fits(value, other, place="q1_1/probe"):
    return seal(fingerprint(value), place).fits(fingerprint(other))


@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats()))
def test_a_sealed_print_fits_the_array_that_it_was_made_from(x):
    assert fits(torch.from_numpy(x), x.copy())


@given(ARRAYS, st.floats(-1, 1), st.integers(0, 10**6))
def test_a_sealed_print_fits_what_its_print_matched_before_it_was_sealed(x, by, where):
    y = x.copy()
    y.flat[where % y.size] += by * 0.9e-4 * np.linalg.norm(x)
    assume(same_print(x, y))
    assert fits(x, y) and fits(y, x) and fits(x, torch.from_numpy(x).float())


@given(ARRAYS, st.integers(0, 10**6), st.floats(0.01, 10))
def test_a_sealed_print_does_not_fit_where_one_entry_has_moved(x, where, by):
    y = x.copy()
    y.flat[where % y.size] += by * (1 + np.linalg.norm(x))
    assert not fits(x, y) and not fits(y, x)


@given(st.integers(-(10**3), 10**3), st.integers(-(10**3), 10**3))
def test_whole_numbers_are_told_apart_and_fit_within_rounding(a, b):
    assert fits(a, b) == (a == b) and fits([a, b], [a + 1e-9, torch.tensor(float(b))])
    many = torch.full((20,), a), torch.full((20,), b)
    assert fits(*many) == (a == b) and fits(many[0], many[0].double() + 1e-9)


def test_a_number_beside_a_power_of_two_fits_from_either_side():
    for size in (0.25, 1.0, 1024.0, 2.0**-29):
        below, above = size * (1 - 3e-5), size * (1 + 3e-5)
        assert fits(below, above) and fits(above, below) and fits([below, 0.0], (above, 1e-10))
        assert fits(np.array([below, 0.0]), np.array([above, size * 1e-5]))
        assert not fits(size, 1.01 * size + 1e-8)


def test_what_must_be_equal_is_compared_exactly_when_it_is_sealed():
    values = ["dot", "general", True, False, None, 1.0, {"a": 1}, {"b": 1}, {"causal"}, [True], len]
    values += [ValueError("x"), TypeError("x"), [1.0], np.ones(1), np.ones((1, 1)), {"a": [1]}, [], {}]
    assert all(fits(a, b) == (i == j) for i, a in enumerate(values) for j, b in enumerate(values))
    x = [torch.tensor([1.0, value], dtype=torch.float64) for value in (math.nan, math.inf, -math.inf, 0.0)]
    assert all(fits(a, b) == (a is b) for a in x for b in x)


EXACT = [
    7,
    -3,
    0,
    1234,
    2.5,
    True,
    False,
    None,
    "general",
    {"causal", "padding"},
    ValueError("no"),
    [1, 2, 3],
    {"k": 2},
]


@pytest.mark.parametrize("value", [*EXACT, np.array([1.5]), np.array([2, 3]), np.arange(FEW) / 7, np.eye(5)], ids=str)
def test_exact_answers_and_tiny_arrays_are_hashes_that_say_nothing(value):
    sealed = seal(fingerprint(value), "q1_1/probe")
    content = sealed.form + sealed.numbers
    for word in ("general", "causal", "Error", "True", "1234"):
        assert word.encode() not in content
    elsewhere = seal(fingerprint(value), "q1_2/probe")  # no table of hashes serves two places
    assert elsewhere.form != sealed.form
    pieces = [
        (s.numbers[i : i + 4], f.numbers[i : i + 4]) for s, f in [(sealed, elsewhere)] for i in range(len(s.numbers))
    ]
    assert all(a != b for a, b in pieces if len(a) == 4)
    for number in np.ravel(np.asarray(fingerprint(value).get("items", [7.0]))):
        for form in ("<d", "<f", "<q"):
            packed = np.array([number]).astype(form).tobytes()
            assert number == 0 or packed not in content


def test_the_same_number_twice_in_a_list_does_not_look_the_same():
    numbers = seal(fingerprint([5, 5, 5, 5]), "q1_1/probe").numbers
    assert len(numbers) == 4 * CELL and len({numbers[i : i + CELL] for i in range(0, 4 * CELL, CELL)}) == 4


def test_only_arrays_that_five_equations_cannot_tell_are_projected():
    assert seal(fingerprint(np.linspace(0, 1, FEW)), "p").numbers[:1] != b"p"
    assert len(seal(fingerprint(np.linspace(0, 1, FEW + 1)), "p").numbers) == 1 + 4 + 4 * 3
    assert len(seal(fingerprint(np.arange(100)), "p").numbers) == 1 + 4  # whole: one hash for all of them
    assert len(seal(fingerprint(np.eye(10, dtype=bool)), "p").numbers) == 1 + 4


def test_a_file_of_mistakes_comes_back_as_it_was_written_and_shows_no_label_or_hint(tmp_path):
    known = mistake("no-scale", plain=1.0, words="dot", many=np.arange(30) / 7, none=ValueError("no"))
    other = mistake("no-mask", plain=2.0, many=np.arange(30) / 9)
    elsewhere = Mistake("flat", "A hint.", {"plain": seal(fingerprint(3.0), place_of("q1_2", "plain"))})
    catalogues = {"q1_1": Catalogue("abc", [known, other], "PROBES = 1\n"), "q1_2": Catalogue("def", [elsewhere])}
    content = pack(catalogues)
    assert content == pack(catalogues) and unpack(content) == catalogues
    (tmp_path / "mistakes.dat").write_bytes(content)
    assert read_catalogue(tmp_path / "mistakes.dat", "q1_1") == catalogues["q1_1"]
    assert read_catalogue(tmp_path / "mistakes.dat", "q1_3") == Catalogue("", [])
    assert content.startswith(FIRST_LINE) and b"no-scale" not in content and b"hint for" not in content
    assert b"PROBES" not in content
    again = FIRST_LINE + zlib.compress(zlib.decompress(content[len(FIRST_LINE) :]), 1)
    assert again != content and unpack(again) == unpack(content)


def damaged():
    content = pack({"q1_1": Catalogue("abc", [mistake("no-scale", plain=1.0)])})
    yield from (b"", b"left over", content[:-9], content[:60], content[len(FIRST_LINE) :], content[:-1] + b"?")
    whole = json.loads(zlib.decompress(content[len(FIRST_LINE) :]).partition(b"\n")[0])["q1_1"]
    wrong = ({"mistakes": [["x"]]}, {"mistakes": [["x", "y", [9]]]}, {"forms": [["probe"]]}, {"at": "0"})
    for data in ([], {"q1_1": {}}, {"q1_1": 3}, *({"q1_1": whole | part} for part in wrong)):
        yield FIRST_LINE + zlib.compress(json.dumps(data).encode() + b"\n")


@pytest.mark.parametrize("content", list(damaged()))
def test_a_damaged_file_of_mistakes_is_told_as_such(tmp_path, content):
    (tmp_path / "mistakes.dat").write_bytes(content)
    with pytest.raises(Unreadable, match="is damaged"):
        read_catalogue(tmp_path / "mistakes.dat", "q1_1")
    with pytest.raises(Unreadable, match="is missing"):
        read_catalogue(tmp_path / "nowhere.dat", "q1_1")
    with pytest.raises(Unreadable, match="cannot be read"):
        read_catalogue(tmp_path, "q1_1")


def test_a_print_whose_numbers_were_cut_off_fits_nothing():
    for value in (1.0, np.arange(30) / 7, np.arange(30), [1.0, 2.0]):
        sealed = seal(fingerprint(value), "p")
        for end in range(len(sealed.numbers)):
            cut = type(sealed)("p", sealed.kind, sealed.form, sealed.numbers[:end])
            assert not cut.fits(fingerprint(value))


def test_prints_and_checks_work_where_torch_is_not_installed(tmp_path):
    program = """
import sys
sys.modules["torch"] = None  # as if it were not there
import numpy as np
from course_utils.explain.fingerprints import fingerprint, precision
from course_utils.explain.explainer import Explainer
from course_utils.notebook.grader import report_of
explain = Explainer("q1_1", globals(), rng="numpy")

@explain
def test_it(answer, rng):
    assert answer(rng.normal()) == np.random.rand(), "it is not the same"

seen = []
def answer(x):
    seen.append(x)
    return np.random.RandomState(2024).rand()

np.random.seed(3)
test_it(env=globals())
test_it(env=globals())
assert seen[0] == seen[1] and np.random.rand() == np.random.RandomState(3).rand()
print(test_it.outcome.status, fingerprint(np.float32(2)) == fingerprint(2), precision(np.zeros(3)))
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, env=environment)
    assert done.stdout == "passed True float64\n", done.stderr
