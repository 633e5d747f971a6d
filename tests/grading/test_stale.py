"""After a change only what it can reach is graded again; until then every old score stays, and is told to be old."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
RIGHT = {"q9_1": "def twice(x):\n    return x + x", "q9_2": "def half(x):\n    return x * 0.5"}
CLASS = {"right": RIGHT, "wrong": {**RIGHT, "q9_2": "def half(x):\n    return x + 2"}}


@pytest.fixture(scope="module")
def graded(write_tiny: Callable[[Path], Path], commands: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny course after its class was graded."""
    course = write_tiny(tmp_path_factory.mktemp("graded"))
    (course / "in").mkdir()
    for student, answers in CLASS.items():
        put(course, student, answers)
    command = ("autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", "out", "--jobs", "1", "--seed", "0")
    assert commands(course)(*command).code == 0
    return course


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return shutil.copytree(graded, tmp_path / "copy")


def put(course: Path, student: str, answers: dict[str, str]) -> None:
    cells = [f'# %% question="{question}"\n{source}\n' for question, source in answers.items()]
    (course / "in" / f"{student}.py").write_text("\n".join(cells))


def rows(course: Path) -> dict[str, dict[str, str]]:
    with open(course / "out" / "grades.csv", newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def last(course: Path, student: str) -> dict[str, Any]:
    """The line that closes a student's last record."""
    lines = map(json.loads, (course / "out" / "results.jsonl").read_text().splitlines())
    return [line for line in lines if line["type"] == "submission" and line["student"] == student][-1]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_mended_question_is_graded_alone_and_the_others_keep_their_scores(course: Path, grade: Run) -> None:
    assert (rows(course)["wrong"]["total"], rows(course)["wrong"]["status"]) == ("60", "graded")
    suite = course / "autograder" / "suites" / "hw9_tiny"
    first = last(course, "wrong")["suites"]

    # a comment and a helper's docstring change nothing
    change(suite / "hidden" / "test_q9_2.py", "    import torch\n", "    import torch  # late\n")
    change(suite / "public" / "test_q9_2.py", "def probe_half(half):\n", 'def probe_half(half):\n    """Three."""\n')
    assert "2 of 2 submissions are graded already." in grade(course).stdout

    change(suite / "hidden" / "test_q9_2.py", 'same(half(x), reference.half(x), "the result")', "pass")
    told = grade(course, "--regrade", "--question", "q9_2")
    assert told.returncode == 0 and "wrong  q9_2: 0 -> 20, total: 60 -> 80" in told.stdout, told.stdout
    assert "To be graded: q9_2." in told.stdout and "another suite" not in told.stdout
    assert {k: rows(course)["wrong"][k] for k in ("q9_1", "q9_2", "status")} == {
        "q9_1": "60", "q9_2": "20", "status": "graded",
    }  # fmt: skip
    assert last(course, "wrong")["suites"]["q9_1"] == first["q9_1"] != last(course, "wrong")["suites"]["q9_2"]
    assert "2 of 2 submissions are graded already." in grade(course).stdout


def test_old_scores_stay_and_are_told_until_their_questions_are_graded_again(course: Path, grade: Run) -> None:
    change(course / "solutions" / "hw9_tiny.py", "import torch\n", "import torch\n\nscale = 2\n")  # reaches both
    told = grade(course, "--question", "q9_2").stdout
    assert "2 of 2 submissions were graded with another suite than today's (q9_1)" in told, told
    assert {row["total"] for row in rows(course).values()} == {"100", "60"}
    told = grade(course).stdout
    assert "To be graded: q9_1." in told and "2 graded now" in told and "another suite" not in told
    assert {row["status"] for row in rows(course).values()} == {"graded"}


def test_a_new_file_and_another_seed_are_graded_anew_and_lose_no_score_on_the_way(course: Path, grade: Run) -> None:
    put(course, "wrong", {**RIGHT, "q9_1": "def twice(x):\n    return x * 3"})
    grade(course, "--question", "q9_2")
    assert {k: rows(course)["wrong"][k] for k in ("q9_1", "q9_2", "status")} == {
        "q9_1": "60", "q9_2": "40", "status": "partial",
    }  # fmt: skip
    assert "1 graded now" in grade(course).stdout
    assert (rows(course)["wrong"]["total"], rows(course)["wrong"]["status"]) == ("40", "graded")
    assert "To be graded: q9_1." in grade(course, "--seed", "3", "--question", "q9_1").stdout
    assert rows(course)["wrong"]["status"] == "graded"
    # the facts of the other seed are not those of this one
    assert "To be graded: q9_1." in grade(course, "--seed", "0").stdout


def test_a_journal_of_version_1_loses_nothing_and_is_brought_up_to_date(course: Path, grade: Run) -> None:
    path = course / "out" / "results.jsonl"
    records = [json.loads(line) | {"version": 1} for line in path.read_text().splitlines()]
    for record in records:
        if record.pop("suites", None):
            record["suite"] = "0" * 64
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    told = grade(course, "--question", "q9_1", "--only", "wrong").stdout
    assert "2 of 2 submissions were graded with another suite than today's (q9_1, q9_2)" in told, told
    assert {row["total"] for row in rows(course).values()} == {"100", "60"}
    assert "2 graded now" in grade(course).stdout
    assert {row["total"] for row in rows(course).values()} == {"100", "60"}


def seeds(course: Path, out: str = "out") -> dict[str, int]:
    """By student, the seed of the last record."""
    lines = map(json.loads, (course / out / "results.jsonl").read_text().splitlines())
    return {line["student"]: line["seed"] for line in lines if line["type"] == "submission"}


def test_every_run_draws_a_seed_of_its_own_and_goes_on_with_it(course: Path, grade: Run, commands: Run) -> None:
    grade(course, "--only", "right", out="one")
    grade(course, "--only", "right", out="other")
    first = seeds(course, "one")["right"]
    assert 0 != first != seeds(course, "other")["right"] != 0

    assert "1 graded now" in grade(course, out="one").stdout  # the rest of the class, with the same inputs
    assert seeds(course, "one") == {"right": first, "wrong": first}
    assert "2 of 2 submissions are graded already." in grade(course, out="one").stdout
    assert f"{first}" not in "".join(page.read_text() for page in (course / "one" / "feedback").iterdir())

    put(course, "wrong", {**RIGHT, "q9_1": "def twice(x):\n    return x * 3"})  # after a look at the feedback
    assert "1 graded now" in grade(course, out="one").stdout
    assert seeds(course, "one")["right"] == first != seeds(course, "one")["wrong"]
    assert "2 of 2 submissions are graded already." in grade(course, out="one").stdout

    case = "wrong/q9_1/test_twice_of_anything"
    told = commands(course)("autograder", "replay", case, "--out", "one", "--submissions", "in", "--json")
    lines = map(json.loads, (course / "one" / "results.jsonl").read_text().splitlines())
    journal = [line["message"] for line in lines if line.get("id") == case][-1]
    assert told.code == 0 and json.loads(told.out)["message"] == journal  # the same numbers in it


def test_a_regrade_draws_anew_and_applies_what_it_told(course: Path, grade: Run) -> None:
    grade(course, out="one")
    before = seeds(course, "one")
    assert "2 graded now" in grade(course, "--regrade", "--dry-run", out="one").stdout
    staged = json.loads((course / "one" / "regrade.jsonl").read_text().splitlines()[-1])["seed"]
    assert seeds(course, "one") == before and staged not in before.values()
    assert "2 of 2 submissions are graded already." in grade(course, "--regrade", out="one").stdout
    assert set(seeds(course, "one").values()) == {staged}
    grade(course, "--regrade", "--seed", "5", out="one")
    assert set(seeds(course, "one").values()) == {5}
    assert "2 of 2 submissions are graded already." in grade(course, out="one").stdout  # nobody asked for another


def test_a_journal_of_the_seed_that_everybody_knows_is_kept_and_not_gone_on_with(course: Path, grade: Run) -> None:
    assert set(seeds(course).values()) == {0}
    assert "2 of 2 submissions are graded already." in grade(course).stdout
    put(course, "late", RIGHT)
    assert "1 graded now" in grade(course).stdout
    assert seeds(course)["right"] == 0 != seeds(course)["late"]
