"""nbgrader's own commands, end to end, with the judge behind them."""

from __future__ import annotations

import csv
import getpass
import json
import os
import re
import shutil
import sqlite3
from pathlib import Path

import nbformat
import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, text

from autograder.builder.notebooks import student_notebook
from autograder.cli import main
from autograder.errors import BadInput
from autograder.frontends.gradebook import GradebookDesk
from autograder.frontends.nbgrader_plugins import _harmless, _readable
from autograder.grading.late import LatePolicy

HOMEWORK = "hw9_tiny"
POSTGRES = os.environ.get("AUTOGRADER_POSTGRES")  # postgresql://user:password@host/ of a server to make a database on


def hand_in(course, *students: str, timestamp: str = "") -> None:
    for student in students:
        folder = course.path / "school" / "submitted" / student / HOMEWORK
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(course.path / "class" / f"{student}.ipynb", folder / f"{HOMEWORK}.ipynb")
        if timestamp:
            (folder / "timestamp.txt").write_text(timestamp)


def url_of(course) -> str:
    return f"sqlite:///{course.path}/school/gradebook.db"


def scores(url: str) -> dict[str, dict[str, float | None]]:
    """The judge's scores in a gradebook, by student and question."""
    with Gradebook(url) as book:
        return {
            submission.student.id: {g.cell.name.removeprefix("test_"): g.auto_score for g in submission.grades}
            for submission in book.notebook_submissions(HOMEWORK, HOMEWORK)
        }


def grade(book: Gradebook, cell: str, student: str):
    return book.find_grade(cell, HOMEWORK, HOMEWORK, student)


def test_the_whole_way_with_nbgrader_s_own_commands(graded, homework, expected, ids, marker: Path) -> None:
    school = graded.path / "school"
    released = nbformat.read(school / "release" / HOMEWORK / f"{HOMEWORK}.ipynb", 4)
    assert [cell.source for cell in released.cells] == [c.source for c in student_notebook(homework).cells]
    found = scores(url_of(graded))
    assert found.pop(getpass.getuser()) == expected["ada"] | {"q9_3": None}  # collected from the exchange
    assert {s: {q: v for q, v in found[ids[s]].items() if q != "q9_3"} for s in ids} == expected
    assert found[ids["ada"]]["q9_3"] is None and found[ids["fay"]]["q9_3"] == 0
    assert not marker.exists()
    with Gradebook(url_of(graded)) as book:
        ben = ids["ben"]
        assert grade(book, "q9_3", ben).needs_manual_grade and not grade(book, "test_q9_1", ben).needs_manual_grade
        assert book.find_submission(HOMEWORK, ben).score == 60
    with open(school / "grades.csv", newline="") as file:
        assert {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}[ids["dan"]] == 97


def test_feedback_shows_messages_and_no_hidden_test(graded, ids) -> None:
    def page(student: str) -> str:
        return (graded.path / "school" / "feedback" / ids[student] / HOMEWORK / f"{HOMEWORK}.html").read_text()

    assert "alert(1)" in page("ben") and "<script>alert(1)" not in page("ben")
    assert "half works for any number" in page("ben") and "Not x + 2." in page("ben")  # the sentence and the hint
    hidden = (graded.path / "autograder" / "suites" / HOMEWORK / "hidden" / "test_q9_2.py").read_text()
    assert not [line for line in hidden.splitlines() if len(line.strip()) > 30 and line.strip() in page("ben")]
    assert "60.0 / 60.0" in page("eve") and "37.0 / 37.0" in page("eve")
    assert "This file is no notebook" in page("fay")


def test_the_fast_path_fills_the_same_gradebook_late_penalties_included(course, expected) -> None:
    with Gradebook(url_of(course)) as book:
        book.update_or_create_assignment(HOMEWORK, duedate="2026-11-10 10:00:00 UTC")
    hand_in(course, *expected, timestamp="2026-11-11 11:00:00 UTC")
    judged = f"school/judged/{HOMEWORK}"  # where `nbgrader autograde` finds it
    course.autograder(f"grade school/submitted --assignment {HOMEWORK} --out {judged} --gradebook school")
    fast = scores(url_of(course))
    assert {s: {q: v for q, v in fast[s].items() if q != "q9_3"} for s in fast} == expected

    def late() -> dict[str, float]:
        with Gradebook(url_of(course)) as book:
            submissions = book.notebook_submissions(HOMEWORK, HOMEWORK)
            return {submission.student.id: submission.late_submission_penalty for submission in submissions}

    penalties = late()
    assert penalties["ada"] == pytest.approx(LatePolicy().penalty(97, 25 * 3600)) == pytest.approx(19.4)
    course.nbgrader(f"autograde {HOMEWORK}")
    assert scores(url_of(course)) == fast and late() == penalties


def test_a_new_gradebook_learns_the_homework_and_a_locked_one_is_told(tmp_path: Path, homework) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    assert not GradebookDesk(url).read(homework).grades
    with Gradebook(url) as book:
        assert book.find_assignment(HOMEWORK).max_score == 100
    lock = sqlite3.connect(tmp_path / "new.db")
    lock.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BadInput, match="cannot be used .* Nothing is lost"):
        GradebookDesk(url).read(homework)
    lock.close()


def test_a_configuration_that_is_not_ours_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    assert main(["nbgrader", "init", str(tmp_path), "hw1_attention"]) == 2
    assert "is not ours" in capsys.readouterr().err
    with pytest.raises(BadInput, match="neither a database URL nor an nbgrader course"):
        GradebookDesk(str(tmp_path / "nowhere"))


@pytest.mark.skipif(not POSTGRES, reason="AUTOGRADER_POSTGRES names no PostgreSQL server")
def test_a_gradebook_may_be_in_postgresql(course, expected) -> None:
    name = f"gradebook_{os.getpid()}"
    server = create_engine(f"{POSTGRES}postgres", isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    url = f"{POSTGRES}{name}"
    try:
        shutil.rmtree(course.path / "school")
        course.autograder(f"nbgrader init school {HOMEWORK} --db-url {url}")
        hand_in(course, "ada", "ben")
        course.autograder(f"grade school/submitted --assignment {HOMEWORK} --out fast --gradebook {url}")
        fast = scores(url)
        assert fast["ben"] == expected["ben"] | {"q9_3": None} and set(fast) == {"ada", "ben"}
        with Gradebook(url) as book:
            mark = grade(book, "q9_3", "ben")
            mark.manual_score, mark.needs_manual_grade = 2.5, False
            book.db.commit()
        course.nbgrader(f"autograde {HOMEWORK}")
        with Gradebook(url) as book:
            assert scores(url) == fast and book.find_submission(HOMEWORK, "ben").score == 62.5
    finally:
        with server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.mark.parametrize(
    ("minutes", "points"), [(-5, 0), (15, 0), (16, 10), (24 * 60, 10), (24 * 60 + 1, 20), (60 * 24 * 30, 50)]
)
def test_lateness_costs_a_share_per_day_begun(minutes: float, points: float) -> None:
    assert LatePolicy(10, 15, 50).penalty(100, minutes * 60) == points


@pytest.mark.parametrize(
    "text",
    [
        "[click](javascript:alert(1))",
        "[click](JaVa&#115;cript&colon;alert(1))",
        "[click](&#1; javascript:alert(1))",
        "[click][1]\n\n[1]: javascript:alert(1)",
        "![click](javascript:alert(1))",
        "<javascript:alert(1)>",
        "<a href='javascript:alert(1)'>click</a>",
        "[click](vbscript:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        "$$ \\href{javascript:alert(1)}{click} $$",
        "$ \\&#104;ref{javascript:alert(1)}{click} $",
        "</pre>\n\n[click](javascript:alert(1))\n\n<script>alert(1)</script>",
    ],
)
def test_no_link_of_a_student_runs_anything(text: str) -> None:
    page = markdown2html_mistune(_harmless(text))
    assert not re.search(r"(href|src)=|<script|</pre>\s*\S", page), page
    assert "\\href" not in page or page.startswith("<pre>")
    assert "alert(1)" in page or "<a>click</a>" in page  # whoever grades it sees what was written


@pytest.mark.parametrize(
    "text",
    [
        "See [this](https://example.org/javascript:x), *data*: $x^2$",
        "![plot](data:image/png;base64,AAAA)",
        "## JavaScript: a heading",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert _harmless(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "![seen](https://example.org/seen.png)",
        "![seen](//example.org/seen.png)",
        "![seen](/formgrader/seen.png)",
        "![seen][1]\n\n[1]: http://example.org/seen.png",
        "[![seen](http://example.org/seen.png)](https://example.org)",
        "<img src='https://example.org/seen.png'>",
        "<b style='background: url(https://example.org/seen.png)'>seen</b>",
        "<video poster='https://example.org/seen.png'>seen</video>",
        "$ \\style{background: url(https://example.org/seen.png)}{seen} $",
    ],
)
def test_no_text_of_a_student_loads_anything(text: str) -> None:
    page = markdown2html_mistune(_harmless(text))
    assert not re.search(r"<(img|video)|<[^>]*(style|src)=", page), page
    assert "\\style" not in page or page.startswith("<pre>")
    assert "seen" in page


def test_long_texts_are_shown_as_written_and_the_course_s_own_as_they_are(tmp_path: Path, homework) -> None:
    own = next(cell.source for cell in student_notebook(homework).cells if cell.cell_type == "markdown")
    long, short = "\\\\( *a* " * 8_000, "*short* " * 900
    texts = [own, long, *[short] * 10]
    cells = [{"cell_type": "markdown", "source": text, "metadata": {}} for text in texts]
    path = tmp_path / "long.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    shown = [cell.source for cell in _readable(path, homework).cells]
    assert shown[0] == own and shown[1] == f"<pre>{long}</pre>" and shown[2] == short
    assert shown[-1] == f"<pre>{short}</pre>"  # together they are long too
    assert markdown2html_mistune(shown[1]).count("<em>") == 0


def test_a_picture_that_is_not_there_does_not_stop_the_page() -> None:
    assert "attachment:a.png" in markdown2html_mistune(_harmless("![mine](attachment:a.png)"))


def test_cells_of_no_known_kind_are_left_out(tmp_path: Path, homework) -> None:
    kinds = [["code"], {"code": 1}, None, 3, "code", "markdown"]
    cells = [{"cell_type": kind, "source": "x", "metadata": {}} for kind in kinds]
    path = tmp_path / "odd.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert [cell.cell_type for cell in _readable(path, homework).cells] == ["code", "markdown"]
