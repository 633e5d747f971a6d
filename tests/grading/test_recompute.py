"""Points and weights are no facts: changing them runs nothing, and whose score changes is told first."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

RIGHT = {"q9_1": "def twice(x):\n    return x + x", "q9_2": "def half(x):\n    return x * 0.5"}
CLASS = {
    "right": RIGHT,
    "rounds": {**RIGHT, "q9_2": "def half(x):\n    return 2.0 if x == 4.0 else x + 2"},  # right in public alone
    "wrong": {**RIGHT, "q9_1": "def twice(x):\n    return x * 3"},
}


@pytest.fixture
def course(tiny: Path) -> Path:
    (tiny / "in").mkdir()
    for student, answers in CLASS.items():
        cells = [f'# %% question="{question}"\n{source}\n' for question, source in answers.items()]
        (tiny / "in" / f"{student}.py").write_text("\n".join(cells))
    return tiny


def change(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text)


def grades(course: Path) -> dict[str, dict[str, str]]:
    with open(course / "out" / "grades.csv", newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def test_a_change_of_points_weights_or_a_test_is_told_and_applied_without_needless_runs(
    course: Path, commands: Callable[..., Callable[..., object]]
) -> None:
    run = commands(course)
    grade = ("autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", "out", "--jobs", "1")
    told = run(*grade)
    assert told.code == 0, told.err
    assert [grades(course)[student]["total"] for student in CLASS] == ["100", "80", "40"]

    # what a person gave stays, whatever the points
    sheet = "student_id,question,points,score,comment,answer\nwrong,q9_1,60,11,ok,\n"
    (course / "out" / "by_hand.csv").write_text(sheet)
    source = course / "solutions" / "hw9_tiny.py"
    change(source, ("points=60", "points=70"), ("points=40", "points=30"))
    before = (course / "out" / "grades.csv").read_text()
    told = run("autograder", "recompute", "out", "--dry-run", "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out) == {
        "exit": 0, "homework": "hw9_tiny", "students": 3, "outdated": [], "applied": False, "feedback": "teaching",
        "grades": "out/grades.csv", "assumptions": [], "remarks": [],
        "changes": [
            {"student": "right", "scores": {"q9_1": [60, 70], "q9_2": [40, 30], "total": [100, 100]}},
            {"student": "rounds", "scores": {"q9_1": [60, 70], "q9_2": [20, 15], "total": [80, 85]}},
            {"student": "wrong", "scores": {"q9_1": [0, 11], "q9_2": [40, 30], "total": [40, 41]}},
        ],
    }  # fmt: skip
    assert (course / "out" / "grades.csv").read_text() == before

    told = run("autograder", "recompute", "out")
    assert "  rounds  q9_1: 60 -> 70, q9_2: 20 -> 15, total: 80 -> 85\n" in told.out and "Boxes" not in told.out
    assert grades(course)["wrong"]["total"] == "41"
    assert json.loads((course / "out" / "feedback" / "rounds.json").read_text())["total"] == 85
    assert json.loads((course / "out" / "summary.json").read_text())["questions"]["q9_1"]["points"] == 70
    assert "3 of 3 submissions are graded already" in run(*grade).out

    # a case's weight: recomputed too, and `grade` by itself knows it as well
    hidden = course / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_2.py"
    change(hidden, ("\ndef test_half", "import pytest\n\n\n@pytest.mark.weight(2)\ndef test_half"))
    assert "rounds  q9_2: 15 -> 10, total: 85 -> 80" in run("autograder", "recompute", "out").out
    assert "No score changes." in run("autograder", "recompute", "out").out
    change(hidden, ("weight(2)", "weight(4)"))
    assert "3 of 3 submissions are graded already" in run(*grade).out
    assert grades(course)["rounds"]["q9_2"] == "6"

    # a test is mended: look first, then apply what was seen, without another run
    change(hidden, ('same(half(x), reference.half(x), "the result")', "pass"))
    told = run("autograder", "recompute", "out", "--dry-run")
    assert "No score changes." in told.out and "3 of 3 submissions were graded with another suite" in told.out
    before = (course / "out" / "grades.csv").read_text()
    told = run(*grade, "--regrade", "--dry-run")
    assert told.code == 0 and "rounds  q9_2: 6 -> 30, total: 76 -> 100" in told.out and "3 graded now" in told.out
    assert (course / "out" / "grades.csv").read_text() == before
    told = run(*grade, "--regrade", "--json")
    facts = json.loads(told.out)
    assert facts["graded_now"] == 0 and facts["applied"] and facts["students"]["rounds"]["total"] == 100
    assert facts["changes"] == [{"student": "rounds", "scores": {"q9_2": [6, 30], "total": [76, 100]}}]
    assert grades(course)["rounds"]["total"] == "100" and not (course / "out" / "regrade.jsonl").exists()

    # what cannot be
    told = run(*grade, "--dry-run")
    assert told.code == 2 and "give both" in told.err
    told = run("autograder", "recompute", "nowhere", "--json")
    assert told.code == 2 and "There is no journal at nowhere/results.jsonl" in json.loads(told.out)["error"]
    change(source, ("points=70", "points=10"), ("points=30", "points=90"))
    told = run("autograder", "recompute", "out")
    assert told.code == 2 and "by_hand.csv:2: `11` is no score. Write 0 to 10" in told.err
