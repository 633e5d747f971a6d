"""What students hand in that is odd: stubs, errors, strange results and strange cells become verdicts and data."""

import math
import textwrap

import pytest
import torch

from autograder.box.channel import LoopbackChannel
from autograder.judge.expect import raises
from autograder.judge.faults import StudentRaised
from autograder.judge.proxies import Student
from autograder.judge.verdicts import StudentError, StudentMemory
from course_utils.checking.compare import NotAnswered, Wrong


def load(*sources, **extra):
    student = Student(LoopbackChannel())
    cells = [{"id": f"c{i}", "source": textwrap.dedent(source), **extra} for i, source in enumerate(sources)]
    return student, student.load(cells)


def test_a_missing_name_is_not_answered(student):
    with pytest.raises(NotAnswered, match="nowhere"):
        student["nowhere"]
    assert "double" in student and "nowhere" not in student
    kinds = {"double": "callable", "Layer": "class", "ANSWER": "object"}
    assert student.kinds([*kinds, "nowhere"]) == kinds
    assert student["ANSWER"] == {"k": [1, 2.5]}


@pytest.mark.parametrize("name", ["stub", "uses_stub"])
def test_a_stub_is_not_answered(student, name):
    with pytest.raises(NotAnswered) as caught:
        student[name](1)
    assert caught.value.question == "q1_1"


def test_torchs_own_not_implemented_is_an_error():
    student, _ = load("import torch\ndef f():\n    return torch.nn.functional.gelu(torch.ones(2).long())")
    with pytest.raises(StudentRaised, match="NotImplementedError"):
        student["f"]()


def test_a_default_dtype_of_the_notebook_is_its_own():
    student, outcomes = load(
        "import torch\ntorch.set_default_dtype(torch.float64)",
        "kept = torch.zeros(2)",
        "def f(x):\n    return kept, torch.nn.Linear(2, 2)(x)",
    )
    assert not any(outcome.fault for outcome in outcomes)
    kept, result = student["f"](torch.ones(1, 2))
    assert kept.dtype == torch.float64 and result.dtype == torch.float32


# in place


def test_changing_an_input_in_place_is_found_out(student):
    x, weights = torch.ones(2), {"W": torch.ones(2), "V": torch.ones(1)}
    with pytest.raises(Wrong, match=r"`clobber` changed its input `weights\['W'\]` in place"):
        student["clobber"](x, weights)
    assert torch.equal(weights["W"], torch.ones(2))
    with pytest.raises(Wrong, match="input `q`"):
        student["clobber_quietly"](x)
    assert torch.isnan(student["same_object"](torch.tensor(math.nan)))


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("rows.reverse()", r"rows\[0\]"),
        ("rows[1].append(3)", r"rows\[1\]"),
        ("rows[0][0] = 7", r"rows\[0\]\[0\]"),
        ("rows[0] = None", r"rows\[0\]"),
        ("table.pop('a')", "table"),
        ("table['a'] = 2", r"table\['a'\]"),
        ("names.add('y')", "names"),
    ],
)
def test_lists_dicts_and_sets_are_inputs_too(body, word):
    student, _ = load(f"def f(rows, table, names):\n    {body}\n    return 1\ndef g(*a):\n    return list(a[0])")
    with pytest.raises(Wrong, match=f"changed its input `{word}` in place"):
        student["f"]([[1, 2], [3]], {"a": 1}, {"x"})
    assert student["g"]([[1, 2], [3]], {"a": 1}, {"x"}) == [[1, 2], [3]]


def test_an_input_of_a_module_has_the_name_that_the_student_gave_it():
    source = "import torch\nclass M(torch.nn.Module):\n    def forward(self, q, mask):\n        return mask.zero_()"
    student, _ = load(source)
    with pytest.raises(Wrong, match="changed its input `mask` in place"):
        student["M"]()(torch.ones(2), torch.ones(2))


# errors


def test_an_error_says_where_in_the_students_code(student):
    with pytest.raises(StudentRaised) as caught:
        student["breaks"](1)
    error = caught.value
    assert error.type_name == "ValueError" and isinstance(error, StudentError)
    assert str(error).startswith("ValueError: bad")
    assert "in your cell answers, line 64: `raise ValueError(" in str(error)
    assert "\n" not in str(error) and "\x1b" not in str(error) and "/home" not in str(error).split(" (in")[0]


def test_the_line_is_the_students_even_when_torch_raises(student):
    with pytest.raises(StudentRaised, match=r"line \d+: `return torch.zeros\(2, 3\) @"):
        student["torch_complains"](1)


def test_too_much_memory_is_memory(student):
    with pytest.raises(StudentMemory):
        student["greedy"]()


def test_expected_exceptions(student):
    with raises(ValueError):
        student["Layer"](5, n_heads=2)
    with raises(ValueError):
        student["special"]()
    with pytest.raises(Wrong, match="raised nothing"), raises(ValueError):
        student["double"](torch.ones(1))
    with pytest.raises(Wrong, match="should raise KeyError, but raised ValueError: d must be"), raises(KeyError):
        student["Layer"](5)


def test_an_exception_that_fights_back_is_still_reported(student):
    if isinstance(student.channel, LoopbackChannel):
        pytest.skip("only trusted code runs in this process")
    with pytest.raises(StudentRaised, match="SystemExit: 3"):
        student["leave"]()
    with pytest.raises(StudentRaised, match="Nasty"):
        student["nasty_error"]()


# odd results


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("numpy", torch.arange(6.0).reshape(2, 3)),
        ("scalar", 1.5),
        ("int", 3),
        ("npbool", True),
        ("sympy", 0.25),
        ("symint", 3),
        ("symmatrix", [[1, 2]]),
        ("oo", math.inf),
        ("set", {1, 2}),
        ("frozen", {(1, 2)}),
        ("named", (1, torch.ones(2))),
        ("size", (2, 3)),
        ("range", [0, 1, 2]),
        ("view", ["a"]),
        ("fraction", 0.5),
        ("big", 2**90),
        ("param", torch.ones(2)),
        ("objects", [1, "a", None]),
        ("dtype", torch.float16),
        ("sparse", torch.eye(2)),
        ("strided", torch.arange(6).reshape(2, 3).T),
        ("complex", 1 + 2j),
        ("tensor_key", {1: 2}),
        ("keys", {4: 1}),
        ("surrogate", "?"),
    ],
)
def test_odd_results_become_data(student, kind, expected):
    got = student["odd"](kind)
    assert type(got) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert got.dtype == expected.dtype and torch.equal(got, expected)
    elif kind == "named":
        assert torch.equal(got[1], expected[1])
    else:
        assert got == expected


def test_nan_and_plain_objects_pass_too(student):
    assert math.isnan(student["odd"]("nan"))
    assert student["odd"]("point").x == 3


@pytest.mark.parametrize("name", ["endless", "enormous", "no_values"])
def test_what_cannot_pass_is_the_students_error(student, name):
    with pytest.raises(StudentError, match="not data|too large"):
        student[name]()


def test_a_tensor_that_lies_arrives_as_its_bytes(student):
    got = student["lie"]()
    assert type(got) is torch.Tensor and torch.equal(got, torch.zeros(3)) and not torch.equal(got, torch.ones(3))
    number = student["lying_number"]()
    assert type(number) is float and number == 4.0 and number != 5.0


# cells


def test_a_failing_cell_does_not_stop_the_next():
    student, outcomes = load("x = 1", "def f(:\n", "y = x / 0", "z = x + 1\nprint('z', z)")
    assert [type(outcome.fault) for outcome in outcomes] == [type(None), StudentRaised, StudentRaised, type(None)]
    assert "in your cell c1, line 1" in str(outcomes[1].fault)
    assert "in your cell c2, line 1: `y = x / 0`" in str(outcomes[2].fault)
    assert student["z"] == 2 and outcomes[3].printed == "z 2\n"


def test_kept_names_survive_later_cells():
    student = Student(LoopbackChannel())
    first = {"id": "a", "source": "def f(): return 1", "keep": ["f", "g"]}
    student.load([first, {"id": "b", "source": "def f(): return 2\nh = 3"}])
    assert student["f"]() == 1 and student["h"] == 3 and "g" not in student


def test_notebook_habits_work():
    student, outcomes = load(
        """
        import inspect, warnings
        import matplotlib.pyplot as plt
        from dataclasses import dataclass
        @dataclass
        class P:
            x: "int" = 1
        warnings.warn("careful")
        plt.plot([1, 2]); plt.show()
        display(P())
        def f():
            return inspect.getsource(f)
        """
    )
    assert outcomes[0].fault is None and outcomes[0].printed == ""
    assert "return inspect.getsource" in student["f"]()


def test_printed_text_is_capped(student):
    student.printed = ""
    student["say"](5)
    assert student.printed == "xxxxx\n"
    student["say"](10**7)
    student["say"](10**7)
    assert len(student.printed) <= 64 * 1024


def test_the_students_randomness_is_seeded(student):
    values = []
    for seed in (1, 1, 2):
        student.seed(seed)
        values.append(student["noise"]())
    assert values[0] == values[1] != values[2]


def test_a_scratch_cell_neither_replaces_nor_removes_an_answer() -> None:
    student = Student(LoopbackChannel())
    answer = {"id": "q1_1", "source": "def f(x):\n    return x + 1\ndef g(x):\n    return f(x)", "keep": ["f"]}
    student.load([answer, {"id": "cell 2", "source": "def f(x):\n    return 0"}, {"id": "cell 3", "source": "del f"}])
    assert student["f"](1) == 2 and student["g"](1) == 2


def test_magics_and_shell_lines_do_nothing() -> None:
    student = Student(LoopbackChannel())
    source = "get_ipython().run_line_magic('matplotlib', 'inline')\nx = get_ipython().getoutput('ls')\ny = 3"
    (outcome,) = student.load([{"id": "cell 1", "source": source}])
    assert outcome.fault is None and student["y"] == 3
