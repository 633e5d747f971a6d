"""A wrong or missing earlier answer costs its own points only, and the reference that helps out cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.grading.test_run import Run, journal, put, totals

USES = 'uses=["q9_1"]'
INTEGRATION = '''

import pytest


@pytest.mark.integration
def test_together(half):
    """Together with your own q9_1: half of five."""
    same(half(5.0), 2.5, "the result")
'''
HALF = "def half(x):\n    return twice(x) / 4"
STUB = 'def twice(x):\n    raise NotImplementedError("q9_1: write your answer here")'
WRONG = "def twice(x):\n    return x * 3"
SPY = """
def half(x):
    import linecache
    told = "SPY-WAS-HERE " + repr(twice.__code__.co_consts)
    told += "".join("".join(entry[2]) for name, entry in linecache.cache.items() if name.startswith("<cell"))
    print(told)
    raise ValueError(told)
"""


@pytest.fixture
def course(tiny: Path) -> Path:
    """The tiny course in which q9_2 is answered by means of q9_1."""
    source = tiny / "solutions" / "hw9_tiny.py"
    text = source.read_text().replace('question="q9_2" points=40', f'question="q9_2" points=40 {USES}')
    source.write_text(
        text.replace("return x / 2", "return twice(x) / 4").replace("return 2 * x", "return 2 * x  # SECRET")
    )
    suite = tiny / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_2.py"
    suite.write_text(suite.read_text() + INTEGRATION)
    (tiny / "in").mkdir()
    return tiny


def verdicts(course: Path, student: str) -> dict[str, tuple[object, object]]:
    records = [record for record in journal(course) if record["student"] == student and record["type"] == "case"]
    return {str(record["case"]): (record["verdict"], record["helped"]) for record in records}


def test_an_earlier_error_costs_its_own_points_and_one_integration_case(course: Path, grade: Run) -> None:
    put(course, "own", {"q9_1": "def twice(x):\n    return x + x", "q9_2": HALF})
    put(course, "mistaken", {"q9_1": WRONG, "q9_2": HALF})
    put(course, "missing", {"q9_1": STUB, "q9_2": HALF})
    put(course, "untouched", {"q9_1": STUB})
    put(course, "both", {"q9_1": WRONG, "q9_2": "def half(x):\n    return twice(x) / 3"})
    assert grade(course).returncode == 0
    third = f"{round(40 * 2 / 3, 2):g}"  # public and hidden case pass with help, the integration case does not
    assert totals(course) == {"own": "100", "mistaken": third, "missing": third, "untouched": "0", "both": "0"}
    assert all(helped == [] for _, helped in verdicts(course, "own").values())
    found = verdicts(course, "missing")
    assert found["q9_2/test_half_of_four"] == ("passed", ["q9_1"])
    assert found["q9_2/test_together"] == ("not answered", [])
    page = (course / "out" / "feedback" / "mistaken.html").read_text()
    assert "passed with the course&#39;s own q9_1 in place of yours" in page


def test_an_earlier_answer_that_is_right_and_slow_costs_nothing_elsewhere(course: Path, grade: Run) -> None:
    source = course / "solutions" / "hw9_tiny.py"
    source.write_text(source.read_text().replace(USES, USES + ' limits={"wall": 2}'))
    slow = "def twice(x):\n    import time\n    time.sleep(3)\n    return 2 * x"
    put(course, "slow", {"q9_1": slow, "q9_2": HALF})
    put(course, "hangs", {"q9_1": "def twice(x):\n    return 2 * x", "q9_2": "def half(x):\n    while x: pass"})
    assert grade(course).returncode == 0
    found = verdicts(course, "slow")
    assert found["q9_2/test_half_of_four"] == ("passed", ["q9_1"]) and found["q9_2/test_together"][0] == "timeout"
    assert totals(course) == {"slow": f"{60 + round(40 * 2 / 3, 2):g}", "hangs": "60"}


def test_nothing_of_the_reference_comes_out_of_the_box(course: Path, grade: Run) -> None:
    put(course, "spy", {"q9_1": WRONG, "q9_2": SPY})
    assert grade(course).returncode == 0
    everything = "".join(path.read_text() for path in (course / "out").rglob("*") if path.is_file())
    assert "SPY-WAS-HERE" in everything, "the spy could speak in its own box"
    assert "SECRET" not in everything and "return 2 * x" not in everything


def test_cases_that_are_tried_again_count_together_and_tell_two_bits(course: Path, grade: Run) -> None:
    picks = {"number": "not hasattr(x, 'dim')", "tensor": "hasattr(x, 'dim')"}
    for student, pick in picks.items():
        put(course, student, {"q9_1": WRONG, "q9_2": f"def half(x):\n    return twice(x) / 4 if {pick} else 0 * x"})
    assert grade(course).returncode == 0
    told, kept = [], []
    for student in picks:
        found = verdicts(course, student)
        kept.append([found[f"q9_2/{case}"][0] for case in ("test_half_of_four", "test_half_of_anything")])
        page = json.loads((course / "out" / "feedback" / f"{student}.json").read_text())
        (question,) = (question for question in page["questions"] if question["question"] == "q9_2")
        told.append([[case[key] for key in ("sentence", "verdict", "message", "credit")] for case in question["cases"]])
        assert "2 checks, which count together and earn 2 of 3 parts" in question["together"]
        assert question["score"] == round(40 * 2 * (2 / 3) / 3, 2)
    assert kept == [["passed", "failed"], ["failed", "passed"]]  # the journal keeps which one it was
    assert told[0] == told[1], "the page tells which of them has passed"
