"""A class as messy as real ones: every grade is right, and every assumption is told to student and teacher."""

from __future__ import annotations

import csv
import json
import runpy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.assumptions import KINDS
from autograder.grading.outputs import page_names
from autograder.places import REPOSITORY

MESSY = REPOSITORY / "examples" / "messy_class"
Run = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """What must become of one student's work."""

    student: str
    total: str
    status: str
    assumed: Counter[str]


def table() -> list[Row]:
    lines = [line for line in (MESSY / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    return [Row(name, total, status, Counter(filter(None, told.split(", ")))) for name, _, total, status, told in rows]


@dataclass(frozen=True)
class Graded:
    folder: Path
    said: str

    @property
    def grades(self) -> dict[str, dict[str, str]]:
        with open(self.folder / "results" / "grades.csv", newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file)}

    @property
    def assumptions(self) -> list[dict[str, str]]:
        return json.loads((self.folder / "results" / "summary.json").read_text())["assumptions"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, commands: Run) -> Graded:
    folder = tmp_path_factory.mktemp("messy") / "course"
    runpy.run_path(str(MESSY / "make.py"))["make"](folder)
    grade = ("autograder", "grade", "submissions", "--assignment", "hw1_attention", "--out", "results")
    done = commands(folder)(*grade, "--roster", "roster.csv")
    assert done.code == 0, done.err
    return Graded(folder, done.out)


def test_every_score_and_status_is_as_expected(graded: Graded) -> None:
    expected = {row.student: (row.total, row.status) for row in table() if row.student}
    assert {student: (row["total"], row["status"]) for student, row in graded.grades.items()} == expected


def test_every_assumption_is_in_the_list_and_nothing_else(graded: Graded) -> None:
    found: dict[str, Counter[str]] = {}
    for one in graded.assumptions:
        found.setdefault(one["student"], Counter())[one["kind"]] += 1
    expected: dict[str, Counter[str]] = {}
    for row in table():
        expected.setdefault(row.student, Counter()).update(row.assumed)
    assert found == {student: kinds for student, kinds in expected.items() if kinds}
    assert set(KINDS) >= {one["kind"] for one in graded.assumptions}


def test_every_student_reads_what_was_assumed_on_a_page_of_their_own(graded: Graded) -> None:
    pages = page_names(graded.grades)
    assert len({page.casefold() for page in pages.values()}) == len(graded.grades)
    for student, page in pages.items():
        data = json.loads((graded.folder / "results" / "feedback" / f"{page}.json").read_text())
        own = [one for one in graded.assumptions if one["student"] == student and one["kind"] != "comment"]
        assert data["student"] == student and len(data["assumptions"]) == len(own)
        text = (graded.folder / "results" / "feedback" / f"{page}.html").read_text()
        assert ("What was assumed" in text or "Nothing could be graded" in text) == bool(own)
    kim = (graded.folder / "results" / "feedback" / f"{pages['Kim']}.html").read_text()
    assert "kim." not in kim.replace("Kim", ""), "nobody's page names another student"


def test_the_printed_list_tells_few_one_by_one_and_many_in_a_line(graded: Graded) -> None:
    said = graded.said.partition("What was assumed")[2]
    assert "ben: ben/hw1_attention_final.ipynb was graded" in said and "Not taken: ben/hw1_attention.ipynb" in said
    assert "renamed: q1_1: your cell defines `my_softargmax`; expected `softargmax`." in said
    assert f"6 times: {KINDS['unreadable']} (broken, cut-off, essay and 3 more)" in said
    assert "Did you mean ada?" in said and "summary.json" in said


def test_words_beside_their_cell_reach_the_one_who_grades_them(graded: Graded) -> None:
    with open(graded.folder / "results" / "by_hand.csv", newline="") as file:
        answers = {row["student_id"]: row["answer"] for row in csv.DictReader(file)}
    for student in ("ada", "words-below", "words-in-code", "no-ids"):
        assert answers[student].startswith("Otherwise"), student


def test_the_report_shows_it_on_top_and_a_second_run_says_the_same(graded: Graded, commands: Run) -> None:
    run = commands(graded.folder)
    assert run("autograder", "report", "results").code == 0
    page = (graded.folder / "results" / "report.html").read_text()
    assert page.index("What was assumed") < page.index('id="questions"') and "my_softargmax" in page
    before = (graded.folder / "results" / "summary.json").read_bytes()
    done = run("autograder", "grade", "submissions", "--assignment", "hw1_attention", "--out", "results")
    assert done.code == 0 and "39 of 39 submissions are graded already" in done.out
    assert done.out.partition("What was")[2] == graded.said.partition("What was")[2]
    assert (graded.folder / "results" / "summary.json").read_bytes() == before
