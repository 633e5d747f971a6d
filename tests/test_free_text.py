"""Free-text questions: from the source to a person's grade, which nothing loses."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from autograder.answers import MAX_TEXT
from autograder.builder.notebooks import solution_notebook, source_notebook, student_cells, student_notebook
from autograder.errors import BadInput, BadSource
from autograder.grading.by_hand import Sheet, read_sheet
from autograder.grading.tables import FORMULA
from autograder.homework import Homework, read_homework
from autograder.judge.results import QuestionResult, Report
from autograder.submission import parse_submission

EXPLAIN = """
# %% [markdown] explain="q9_3" points=3 minutes=8 difficulty=2
# ## 9.3 In your own words: why twice?
# Say why, in two sentences.
#
# BEGIN SOLUTION
# Because two halves make a whole.
#
# **Rubric.** 3 points: says so.
# END SOLUTION
"""
LINE = 43  # where its header stands

Run = Callable[..., Any]


@pytest.fixture
def course(tiny: Path) -> Path:
    """The tiny course with a free-text question at the end."""
    path = tiny / "solutions" / "hw9_tiny.py"
    path.write_text(path.read_text().replace("points=40", "points=37") + EXPLAIN)
    return tiny


def read(course: Path) -> Homework:
    return read_homework("hw9_tiny", course / "solutions", course / "autograder" / "suites")


def cell(notebook: nbformat.NotebookNode, grade_id: str = "q9_3") -> nbformat.NotebookNode:
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def test_it_counts_with_the_others(course: Path) -> None:
    homework = read(course)
    (asked,) = homework.explanations
    assert (asked.id, asked.points, asked.line) == ("q9_3", 3, LINE)
    assert asked.prompt.endswith("in two sentences.") and asked.answer.startswith("Because")
    assert [one.id for one in homework.graded] == ["q9_1", "q9_2", "q9_3"] and homework.points == 100


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("# END SOLUTION\n", "", LINE + 4, "never closed"),
        ("# BEGIN SOLUTION\n", "", LINE + 7, "without `# BEGIN SOLUTION`"),
        ("# Because", "# BEGIN SOLUTION\n# Because", LINE + 5, "inside the region"),
        (' explain="q9_3" points=3 minutes=8 difficulty=2', "", LINE + 4, "outside a question"),
        ('explain="q9_3"', 'explain="q9_2"', LINE, "answered twice"),
        ('explain="q9_3"', 'explain="q8_3"', LINE, "not a question id"),
        ("points=3 ", "points=4 ", 11, "add to 101"),
        ("points=3 ", "", LINE, "no usable `points`"),
        ("[markdown] explain", "explain", LINE, "stands at a code cell"),
        ("**Rubric.** ", "", LINE, "no rubric"),
        ("# END SOLUTION\n", "# END SOLUTION\n# And so on.\n", LINE, "text stands after"),
        ("# ## 9.3 In your own words: why twice?\n# Say why, in two sentences.\n", "", LINE, "asks nothing"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_its_line(course: Path, old: str, new: str, line: int, words: str) -> None:
    path = course / "solutions" / "hw9_tiny.py"
    before, header, explain = path.read_text().partition("\n# %% [markdown] explain")
    assert old in header + explain
    path.write_text(before + (header + explain).replace(old, new, 1))
    with pytest.raises(BadSource) as caught:
        read(course)
    told = [problem for problem in caught.value.problems if words in problem.what]
    assert told and told[0].line == line and told[0].remedy, str(caught.value)


def test_students_get_the_prompt_and_a_cell_that_nbgrader_grades_by_hand(course: Path) -> None:
    notebook = student_notebook(read(course))
    MetadataValidator().validate_nb(notebook)
    answer = cell(notebook)
    meta = answer.metadata.nbgrader
    assert (meta.grade, meta.solution, meta.locked, meta.points) == (True, True, False, 3)
    assert answer.cell_type == "markdown" and answer.source == "YOUR ANSWER HERE"
    prompt = notebook.cells[notebook.cells.index(answer) - 1]
    assert "why twice?" in prompt.source and "graded by a person" in prompt.source
    assert "halves" not in nbformat.writes(notebook) and "Rubric" not in nbformat.writes(notebook)


def test_staff_read_the_model_answer_and_the_rubric(course: Path) -> None:
    assert cell(solution_notebook(read(course))).source.startswith("Because two halves make a whole.\n\n**Rubric.**")
    assert cell(source_notebook(read(course))).source.startswith("BEGIN SOLUTION\n")


def submitted(course: Path, text: str | None, ids: bool = True) -> nbformat.NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=student_cells(read(course), solved=True))
    if text is None:
        notebook.cells.remove(cell(notebook))
    else:
        cell(notebook).source = text
    for one in notebook.cells if not ids else []:
        one.metadata = {}
    return notebook


@pytest.mark.parametrize(
    ("text", "ids", "read_as", "note"),
    [
        ("Two halves.", True, "Two halves.", ""),
        ("Two halves.", False, "Two halves.", "q9_3: the answer was taken from cell"),
        ("YOUR ANSWER HERE", True, "", ""),
        (None, True, "", "q9_3: there is no cell for the answer"),
        ("a" * (MAX_TEXT + 5), True, "a" * MAX_TEXT, "longer than"),
        ("half \ud800 a pair", True, "half ? a pair", ""),
        ("\ra:\r=b\r\nc\u2028d\x85\x0be\x0c\n", True, "a:\n=b\nc\nd\n\ne", ""),
    ],
)
def test_the_answer_is_found_and_bounded(course: Path, text: str | None, ids: bool, read_as: str, note: str) -> None:
    raw = nbformat.writes(submitted(course, text, ids), ensure_ascii=True).encode()
    submission = parse_submission(raw, ".ipynb", read(course))
    assert submission.texts == {"q9_3": read_as}
    assert [line for line in submission.notes if "q9_3" in line and note in line] if note else True


@pytest.mark.parametrize("kind", ["markdown", "raw", "code"])
@pytest.mark.parametrize("above", [False, True])
def test_words_in_a_new_cell_beside_the_empty_one_are_read_and_told(course: Path, kind: str, above: bool) -> None:
    notebook = submitted(course, "YOUR ANSWER HERE")
    place = notebook.cells.index(cell(notebook)) + (not above)
    notebook.cells.insert(place, getattr(nbformat.v4, f"new_{kind}_cell")("Two halves make a whole."))
    submission = parse_submission(nbformat.writes(notebook).encode(), ".ipynb", read(course))
    assert submission.texts == {"q9_3": "Two halves make a whole."}
    assert [one.kind for one in submission.assumptions] == ["text"]


def test_the_course_s_own_cells_are_nobody_s_words(course: Path) -> None:
    notebook = submitted(course, None)
    notebook.cells.append(nbformat.v4.new_markdown_cell("# A tiny homework"))
    notebook.cells.append(nbformat.v4.new_code_cell("x = 1"))
    submission = parse_submission(nbformat.writes(notebook).encode(), ".ipynb", read(course))
    assert submission.texts == {"q9_3": ""} and "no cell for the answer" in submission.notes[0]


@pytest.fixture
def grade(commands: Run) -> Run:
    def run(course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ("autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", "out", "--jobs", "1", *arguments)
        done = commands(course)(*command)
        return subprocess.CompletedProcess(command, done.code, done.out, done.err)

    return run


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_person_s_grade_counts_from_then_on_and_survives_a_regrade(course: Path, grade: Run) -> None:
    (course / "in").mkdir()
    for student, text in (("ada", "=HYPERLINK(1)"), ("ben", "<b>Two</b> halves.")):
        (course / "in" / f"{student}.ipynb").write_text(nbformat.writes(submitted(course, text)))
    (course / "in" / "cat.ipynb").write_text("no notebook")
    assert grade(course).returncode == 0
    grades = {row["student_id"]: row for row in rows(course / "out" / "grades.csv")}
    assert (grades["ben"]["q9_3"], grades["ben"]["total"], grades["cat"]["q9_3"]) == ("", "97", "0")
    page = (course / "out" / "feedback" / "ben.html").read_text()
    assert "Graded by a person: not graded yet." in page and "&lt;b&gt;Two" in page

    sheet = course / "out" / "by_hand.csv"
    (ada, ben) = [row for row in rows(sheet) if row["student_id"] != "cat"]
    assert ada["answer"] == "'=HYPERLINK(1)" and ben["answer"] == "<b>Two</b> halves." and ben["score"] == ""
    sheet.write_text(
        "student_id;question;points;score;comment;answer;marker\n"
        "ben;q9_3;3;2,5;Nearly.;;MK\nben;q9_1;60;59;Seen by me.;;MK\nada;q9_3;3;;Ask again;;\n"
    )
    told = grade(course, "--regrade")
    assert told.returncode == 0, told.stderr
    assert "Score changes:\n  ben  q9_1: 60 -> 59, q9_3: none -> 2.5, total: 97 -> 98.5\n3 subm" in told.stdout
    grades = {row["student_id"]: row for row in rows(course / "out" / "grades.csv")}
    assert [grades["ben"][key] for key in ("q9_1", "q9_2", "q9_3", "total")] == ["59", "37", "2.5", "98.5"]
    assert grades["ada"]["total"] == "97"
    page = (course / "out" / "feedback" / "ben.html").read_text()
    assert "Nearly." in page and "Seen by me." in page and "Graded by a person." in page
    kept = sheet.read_text()
    assert "Ask again" in kept and "'=HYPERLINK(1)" in kept
    assert '"ben";"q9_1";"60";"59";"Seen by me.";"";"MK"' in kept
    again = read_sheet(course / "out", read(course))
    assert again.delimiter == ";" and again.of("ben")["q9_3"].score == 2.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ben,q9_3,3,4,,", "by_hand.csv:2: `4` is no score"),
        ("ben,q9_3,3,good,,", "`good` is no score"),
        ("ben,q9_9,3,1,,", "no question of hw9_tiny: `q9_9`"),
        ("ben,q9_3,3,1,,a\rb\rben,q9_3,3,1,,", "by_hand.csv:3: no question"),
    ],
)
def test_a_score_that_cannot_be_is_told_with_its_line(course: Path, text: str, words: str) -> None:
    (course / "by_hand.csv").write_text(f"student_id,question,points,score,comment,answer\n{text}\n")
    with pytest.raises(BadInput, match=words):
        read_sheet(course, read(course))


@pytest.mark.parametrize("answer", ["Because:\r=cmd|' /C calc'!A0", "\r\n=1+1", "a\u2028b\x85=c", '"\r",\r;"', "a\0b"])
def test_no_answer_breaks_the_sheet_for_the_class(course: Path, answer: str) -> None:
    homework = read(course)
    questions = [QuestionResult(asked.id, asked.points, ()) for asked in homework.graded]
    questions[2] = replace(questions[2], text=answer)  # as an older journal may have it
    reports = {student: Report(homework.name, tuple(questions)) for student in ("ada", "ben")}
    path = course / "by_hand.csv"
    written = Sheet().text(reports)
    path.write_bytes(written.encode())
    sheet = read_sheet(course, homework)
    assert [(row["student_id"], row["question"]) for row in sheet.rows] == [("ada", "q9_3"), ("ben", "q9_3")]
    assert "\r" not in written and not sheet.rows[0]["answer"].startswith(FORMULA)
    path.write_text(written.replace('"ben","q9_3","3",""', '"ben","q9_3","3","2"'))
    graded = read_sheet(course, homework)
    assert graded.of("ben")["q9_3"].score == 2 and read_sheet(course, homework).text(reports) == graded.text(reports)


def test_a_sheet_with_the_line_ends_of_any_system_is_read(course: Path) -> None:
    homework = read(course)
    for end in ("\n", "\r\n", "\r"):
        lines = ["student_id,question,points,score,comment,answer", 'ben,q9_3,3,2,"- one\n= two",x', ""]
        (course / "by_hand.csv").write_bytes(end.join(lines).encode())
        sheet = read_sheet(course, homework)
        assert sheet.of("ben")["q9_3"].comment == "- one\n= two"
        assert '"- one\n= two"' in sheet.text({})  # what people wrote stays as it is
