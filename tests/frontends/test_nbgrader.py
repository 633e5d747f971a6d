"""nbgrader's own commands, end to end, with the judge behind them."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.builder.notebooks import student_notebook
from autograder.frontends.late import LatePolicy

HOMEWORK = "hw9_tiny"


@pytest.fixture
def school(course: Path, autograder) -> Path:
    """An nbgrader course made from the tiny course."""
    autograder("build")
    autograder("nbgrader", "init", "school", HOMEWORK)
    return course / "school"


def hand_in(school: Path, *students: str, timestamp: str = "") -> None:
    for student in students:
        folder = school / "submitted" / student / HOMEWORK
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(school.parent / "class" / f"{student}.ipynb", folder / f"{HOMEWORK}.ipynb")
        if timestamp:
            (folder / "timestamp.txt").write_text(timestamp)


def gradebook(school: Path) -> Gradebook:
    return Gradebook(f"sqlite:///{school}/gradebook.db")


def scores(school: Path) -> dict[str, dict[str, float | None]]:
    """The judge's scores in the gradebook, by student and question."""
    with gradebook(school) as book:
        return {
            submission.student.id: {g.cell.name.removeprefix("test_"): g.auto_score for g in submission.grades}
            for submission in book.notebook_submissions(HOMEWORK, HOMEWORK)
        }


def grade(book: Gradebook, cell: str, student: str):
    return book.find_grade(cell, HOMEWORK, HOMEWORK, student)


def test_the_whole_way_with_nbgrader_s_own_commands(school: Path, homework, expected, nbgrader) -> None:
    archive = school / "downloaded" / HOMEWORK / "archive"
    archive.mkdir(parents=True)
    for number, student in enumerate(expected):  # as Canvas names them
        name = f"{student}_{'LATE_' * (number % 2)}{number}_77_{HOMEWORK}{'-1' * (number % 2)}.ipynb"
        shutil.copy(school.parent / "class" / f"{student}.ipynb", archive / name)
    nbgrader(
        f"generate_assignment {HOMEWORK} --force",
        f"zip_collect {HOMEWORK}",
        f"autograde {HOMEWORK}",
        f"generate_feedback {HOMEWORK}",
        "export",
        cwd=school,
    )
    released = nbformat.read(school / "release" / HOMEWORK / f"{HOMEWORK}.ipynb", 4)
    assert [cell.source for cell in released.cells] == [c.source for c in student_notebook(homework).cells]

    found = scores(school)
    ids = {student: str(number) for number, student in enumerate(expected)}
    assert {s: {q: v for q, v in found[ids[s]].items() if q != "q9_3"} for s in ids} == expected
    assert found[ids["ada"]]["q9_3"] is None and found[ids["fay"]]["q9_3"] == 0
    assert not (school.parent / "marker").exists()
    with gradebook(school) as book:
        ben = ids["ben"]
        assert grade(book, "q9_3", ben).needs_manual_grade and not grade(book, "test_q9_1", ben).needs_manual_grade
        assert book.find_submission(HOMEWORK, ben).score == 60

    page = (school / "feedback" / ben / HOMEWORK / f"{HOMEWORK}.html").read_text()
    assert "alert(1)" in page and "<script>alert(1)" not in page
    assert "half works for any number" in page and "Not x + 2." in page  # the sentence and the hint
    hidden = (school.parent / "autograder" / "suites" / HOMEWORK / "hidden" / "test_q9_2.py").read_text()
    assert not [line for line in hidden.splitlines() if len(line.strip()) > 30 and line.strip() in page]
    damaged = (school / "feedback" / ids["eve"] / HOMEWORK / f"{HOMEWORK}.html").read_text()
    assert "60.0 / 60.0" in damaged and "37.0 / 37.0" in damaged
    assert "This file is no notebook" in (school / "feedback" / ids["fay"] / HOMEWORK / f"{HOMEWORK}.html").read_text()
    with open(school / "grades.csv", newline="") as file:
        assert {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}[ids["dan"]] == 97


def test_a_person_s_score_wins_and_survives_the_next_submission(school: Path, nbgrader, autograder) -> None:
    hand_in(school, "ada", "ben", timestamp="2026-11-10 10:00:00 UTC")
    nbgrader(f"autograde {HOMEWORK}", cwd=school)
    with gradebook(school) as book:
        for cell, score in (("q9_3", 2.5), ("test_q9_2", 20.0)):
            mark = grade(book, cell, "ben")
            mark.manual_score, mark.needs_manual_grade = score, False
        book.find_comment("q9_3", HOMEWORK, HOMEWORK, "ben").manual_comment = "Nearly."
        book.db.commit()
    nbgrader(f"autograde {HOMEWORK} --force", cwd=school)
    with gradebook(school) as book:
        assert grade(book, "q9_3", "ben").score == 2.5 and not grade(book, "q9_3", "ben").needs_manual_grade

    shutil.copy(school.parent / "class" / "ada.ipynb", school.parent / "class" / "ben.ipynb")
    hand_in(school, "ben", timestamp="2026-11-10 12:00:00 UTC")
    nbgrader(f"autograde {HOMEWORK}", cwd=school)
    with gradebook(school) as book:
        assert book.find_submission(HOMEWORK, "ben").score == 60 + 20 + 2.5
        assert grade(book, "test_q9_2", "ben").auto_score == 37
        assert grade(book, "q9_3", "ben").needs_manual_grade  # another text: another look

    autograder("grade", "school/submitted", "--assignment", HOMEWORK, "--out", "fast", "--gradebook", "school")
    with open(school.parent / "fast" / "grades.csv", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["student_id"] == "ben")
    assert (row["q9_2"], row["q9_3"], row["total"]) == ("20", "2.5", "82.5")
    assert "Nearly." in (school.parent / "fast" / "feedback" / "ben.html").read_text()
    assert not (school.parent / "fast" / "by_hand.csv").exists()


def test_the_fast_path_fills_the_same_gradebook_late_penalties_included(
    school: Path, expected, nbgrader, autograder
) -> None:
    with gradebook(school) as book:
        book.update_or_create_assignment(HOMEWORK, duedate="2026-11-10 10:00:00 UTC")
    hand_in(school, *expected, timestamp="2026-11-11 11:00:00 UTC")
    command = ("grade", "school/submitted", "--assignment", HOMEWORK, "--out", "fast", "--gradebook")
    autograder(*command, "school")
    fast = scores(school)
    assert {s: {q: v for q, v in fast[s].items() if q != "q9_3"} for s in fast} == expected

    def late() -> dict[str, float]:
        with gradebook(school) as book:
            submissions = book.notebook_submissions(HOMEWORK, HOMEWORK)
            return {submission.student.id: submission.late_submission_penalty for submission in submissions}

    penalties = late()
    assert penalties["ada"] == pytest.approx(LatePolicy().penalty(97, 25 * 3600)) == pytest.approx(19.4)
    nbgrader(f"autograde {HOMEWORK}", cwd=school)
    assert scores(school) == fast and late() == penalties

    lock = sqlite3.connect(school / "gradebook.db")
    lock.execute("BEGIN EXCLUSIVE")
    told = autograder(*command, f"sqlite:///{school}/gradebook.db", fails=True)
    lock.close()
    assert "cannot be used" in told.stderr and "Traceback" not in told.stderr


def test_a_new_gradebook_learns_the_homework(course: Path, autograder) -> None:
    url = f"sqlite:///{course}/new.db"
    autograder("grade", "class/ben.ipynb", "--assignment", HOMEWORK, "--out", "out", "--gradebook", url)
    with Gradebook(url) as book:
        assert book.find_submission(HOMEWORK, "ben").score == 60 and book.find_assignment(HOMEWORK).max_score == 100


def test_release_fetch_submit_and_collect_through_the_exchange(school: Path, expected, nbgrader, tmp_path) -> None:
    (tmp_path / "exchange").mkdir()
    (tmp_path / "exchange").chmod(0o777)
    home = tmp_path / "home"
    home.mkdir()
    options = f"--Exchange.root={tmp_path}/exchange --CourseDirectory.course_id=school"
    nbgrader(f"generate_assignment {HOMEWORK} --force", f"release_assignment {HOMEWORK} {options}", cwd=school)
    nbgrader(f"fetch_assignment {HOMEWORK} {options}", cwd=home)
    assert (home / HOMEWORK / "course_utils" / "checks.py").is_file() and (home / HOMEWORK / "tests").is_dir()
    shutil.copy(school.parent / "class" / "ada.ipynb", home / HOMEWORK / f"{HOMEWORK}.ipynb")
    nbgrader(f"submit {HOMEWORK} {options}", cwd=home)
    nbgrader(f"collect {HOMEWORK} {options}", f"autograde {HOMEWORK}", cwd=school)
    (found,) = scores(school).values()
    assert found == expected["ada"] | {"q9_3": None}


def test_a_configuration_that_is_not_ours_is_left_alone(course: Path, autograder) -> None:
    autograder("build")
    (course / "old").mkdir()
    (course / "old" / "nbgrader_config.py").write_text("c = get_config()\n")
    told = autograder("nbgrader", "init", "old", HOMEWORK, fails=True)
    assert told.returncode == 2 and "is not ours" in told.stderr
    told = autograder("grade", "class", "--assignment", HOMEWORK, "--out", "o", "--gradebook", "nowhere", fails=True)
    assert told.returncode == 2 and "neither a database URL nor an nbgrader course" in told.stderr


@pytest.mark.parametrize(
    ("minutes", "points"), [(-5, 0), (15, 0), (16, 10), (24 * 60, 10), (24 * 60 + 1, 20), (60 * 24 * 30, 50)]
)
def test_lateness_costs_a_share_per_day_begun(minutes: float, points: float) -> None:
    assert LatePolicy(10, 15, 50).penalty(100, minutes * 60) == points
