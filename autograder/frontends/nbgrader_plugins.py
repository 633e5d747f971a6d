"""The classes that an nbgrader course's configuration names: nbgrader calls them, the judge does the work.

Student code never runs in nbgrader's process. The judge runs in a process of its own, once for the whole class.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from textwrap import indent
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import BasePlugin, ExportPlugin
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Integer, Unicode

from autograder.builder.notebooks import student_notebook
from autograder.frontends.exports import NBGRADER
from autograder.frontends.gradebook import graded_cell
from autograder.frontends.judged import judge_environment
from autograder.frontends.messages import question_text
from autograder.grading.changes import written_grades
from autograder.grading.late import LatePolicy
from autograder.grading.outputs import page_names
from autograder.grading.tables import csv_text, inert
from autograder.homework import Homework, read_homework
from autograder.submission import BadSubmission, read_submission

RUNS = re.compile(r"(java|vb)script:|data:(?!image/(png|jpeg|gif|webp)[;,])")  # at the beginning of an address
HERE = re.compile(r"(data|attachment):")  # what an address of a picture begins with that nobody has to be asked for
LOADS = {"src", "srcset", "poster", "background", "data", "action", "formaction", "ping", "style"}
FORMULAS = ("\\href", "\\style", "\\require", "\\url", "\\includegraphics")  # these reach out of a formula
LONG = 8_000  # characters of a text that is rendered: time grows with their square; longer ones are shown as written
RENDERED = 40_000  # and of all texts of a notebook together that are not the course's own
JUDGED = "judged"  # beside submitted/ and autograded/: the judge's journal, grades and feedback pages


class SubmissionExporter(NotebookExporter):
    """Reads whatever was handed in as a notebook that nbgrader can show: nothing in it can stop the class."""

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> Any:
        """The notebook with the course's own metadata in its cells; a page that says why, where it is unreadable."""
        homework = _homework(resources["nbgrader"]["assignment"])
        return self.from_notebook_node(_readable(Path(filename), homework), resources=resources, **kwargs)


class JudgeAutogrades(NbGraderPreprocessor):  # type: ignore[misc]
    """In the place of nbgrader's Execute and SaveAutoGrades: the judge's scores and messages."""

    jobs = Integer(0, help="processes that grade side by side; 0: one per core").tag(config=True)
    sandbox = Unicode("auto", help="the box: auto, bwrap, namespaces or process").tag(config=True)
    feedback = Unicode("", help="on hidden cases: full, teaching or verdicts; empty: by the due date").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge the class, if that is not done yet, and show this student's results in their notebook."""
        told = resources["nbgrader"]
        homework, student = _homework(told["assignment"]), told["student"]
        out = Path(self.parent.parent.coursedir.root) / JUDGED / homework.name
        if not getattr(self.parent, "judged", False):
            self._judge(homework.name, student, told["db_url"], out)
        path = out / "feedback" / f"{page_names(written_grades(out)).get(student, student)}.json"
        if not path.is_file():
            raise RuntimeError(f"The judge knows no student `{student}`: ids are letters, digits and . _ @ + -")
        feedback = json.loads(path.read_text())
        if feedback["status"] == "infrastructure":
            raise RuntimeError(f"Not graded for a fault of ours, try again: {'; '.join(feedback['notes'])}")
        _show(nb, feedback, homework)
        return nb, resources

    def _judge(self, assignment: str, student: str, url: str, out: Path) -> None:
        course = self.parent.parent.coursedir
        submitted = Path(course.root) / course.submitted_directory
        command = [sys.executable, "-P", "-m", "autograder", "grade", str(submitted), "--assignment", assignment]
        command += ["--out", str(out), "--gradebook", url, "--jobs", str(self.jobs), "--sandbox", self.sandbox]
        command += [*(["--feedback", self.feedback] if self.feedback else []), *_due(url, assignment)]
        policy = LatePenalty(parent=self.parent)
        late = {"--late": policy.percent_per_day, "--grace": policy.grace_minutes, "--most": policy.most_percent}
        command += [word for option, value in late.items() for word in (option, str(value))]
        everybody = course.student_id == "*"
        command += [] if everybody else ["--only", student]
        done = subprocess.run(command, env=judge_environment(), text=True, capture_output=True)
        for line in done.stdout.splitlines():
            self.log.info("judge: %s", line)
        if done.returncode not in (0, 1):  # 1: somebody could not be graded; told when it is their turn
            raise RuntimeError(f"The judge could not start: {done.stderr.strip()[-2000:]}")
        self.parent.judged = everybody


def _due(url: str, assignment: str) -> list[str]:
    """The assignment's due date, which nbgrader keeps in UTC, for the judge's command."""
    with Gradebook(url) as book:
        try:
            due = book.find_assignment(assignment).duedate
        except MissingEntry:
            due = None
    return ["--due", f"{due.isoformat()}+00:00"] if due else []


class LatePenalty(BasePlugin):  # type: ignore[misc]
    """The course's late policy as a plugin of nbgrader's AssignLatePenalties."""

    percent_per_day = Float(LatePolicy.percent_per_day, help="of the score, per day begun").tag(config=True)
    grace_minutes = Float(LatePolicy.grace_minutes, help="late by no more than this costs nothing").tag(config=True)
    most_percent = Float(LatePolicy.most_percent, help="never more than this").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """The points to take off."""
        policy = LatePolicy(self.percent_per_day, self.grace_minutes, self.most_percent)
        return policy.penalty(score, total_seconds_late)


class QuotedCsv(ExportPlugin):  # type: ignore[misc]
    """`nbgrader export` with nbgrader's columns, and fields quoted where they need it."""

    def export(self, gradebook: Gradebook) -> None:
        """Write every student's row for every assignment."""
        students = [s for s in gradebook.students if not self.student or s.id in map(str, self.student)]
        assignments = [a for a in gradebook.assignments if not self.assignment or a.name in map(str, self.assignment)]
        rows = (_export_row(gradebook, assignment, student) for assignment in assignments for student in students)
        with open(self.to or "grades.csv", "w", encoding="utf-8", newline="") as file:
            file.write(csv_text([NBGRADER, *([inert(cell) for cell in row] for row in rows)]))


def _export_row(gradebook: Gradebook, assignment: Any, student: Any) -> list[Any]:
    person = [student.id, student.last_name, student.first_name, student.email]
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return [assignment.name, assignment.duedate, None, *person, 0.0, 0.0, 0.0, assignment.max_score]
    raw, penalty = submission.score, submission.late_submission_penalty
    scores = [raw, penalty, max(0.0, raw - penalty), assignment.max_score]
    return [assignment.name, assignment.duedate, submission.timestamp, *person, *scores]


@cache
def _homework(name: str) -> Homework:
    return read_homework(name)


@cache
def _course_cells(homework: Homework) -> dict[str, NotebookNode]:
    """The cells of the student notebook that nbgrader knows, by id."""
    cells = student_notebook(homework).cells
    return {cell.metadata.nbgrader.grade_id: cell for cell in cells if "nbgrader" in cell.metadata}


@cache
def _course_texts(homework: Homework) -> frozenset[str]:
    """The texts of the student notebook as they are handed out."""
    return frozenset(cell.source for cell in student_notebook(homework).cells if cell.cell_type == "markdown")


def _readable(path: Path, homework: Homework) -> NotebookNode:
    try:
        read_submission(path, homework)
        raw = json.loads(path.read_bytes().decode("utf-8-sig"))["cells"]
        notebook = nbformat.v4.new_notebook(cells=_cells(raw, homework))
        nbformat.validate(notebook)
    except BadSubmission as error:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"This file is no notebook: {error}")])
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return notebook


def _cells(raw: list[Any], homework: Homework) -> list[NotebookNode]:
    """The submitted sources; what nbgrader is told about a cell comes from the course, whatever the file says."""
    course, seen, cells, left = _course_cells(homework), set(), [], RENDERED
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    for cell in (cell for cell in raw if isinstance(cell, dict) and cell.get("cell_type") in [*make]):  # may be a list
        source = cell.get("source", "")
        text = "".join(line for line in source if isinstance(line, str)) if isinstance(source, list) else str(source)
        metadata = cell.get("metadata")
        told = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = told.get("grade_id") if isinstance(told, dict) else None
        text = text.encode("utf-8", "replace").decode()
        if cell["cell_type"] == "markdown" and text not in _course_texts(homework):
            left -= min(len(text), LONG)
            text = _harmless(text) if left >= 0 else _verbatim(text)
        made = make[cell["cell_type"]](text)
        known = course.get(grade_id) if isinstance(grade_id, str) and grade_id not in seen else None
        if known is not None and known.cell_type == made.cell_type:
            seen.add(grade_id)
            made.metadata, made.id = nbformat.from_dict(known.metadata), known.id
        cells.append(made)
    return cells


def _harmless(markdown: str) -> str:
    """A student's text without what could run in the browser of the person who grades it, or ask a server for anything.

    What is too long to be rendered in a moment is shown as it was written.
    """
    if len(markdown) > LONG:
        return _verbatim(markdown)
    cleaner = SanitizeHTML()
    cleaner.tags = [*cleaner.tags, "details", "summary"]  # the course's own help
    clean = str(cleaner.sanitize_html_tags(markdown))
    try:
        page = _Page(markdown2html_mistune(clean))
    except Exception:  # nor may a text stop the page that it stands on
        return _verbatim(markdown)
    return _verbatim(markdown) if page.runs else clean


def _verbatim(text: str) -> str:
    """A text as it was written, without anything in it that means something to a page."""
    return f"<pre>{escape(text)}</pre>"


class _Page(HTMLParser):
    """A page as a browser reads it: whether it loads anything, or something on it could run once it is clicked."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.runs = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at the addresses, without the characters that browsers leave out of them."""
        for name, value in attrs:
            address = "".join(c for c in value or "" if c > " ").lower()
            self.runs |= name in ("href", "src") and RUNS.match(address) is not None
            self.runs |= name in LOADS and HERE.match(address) is None

    def handle_data(self, data: str) -> None:
        r"""Look at the formulas: `\href` makes a link of whatever it is given, `\style` loads a background."""
        self.runs |= any(command in data for command in FORMULAS)


def _show(notebook: NotebookNode, feedback: dict[str, Any], homework: Homework) -> None:
    """Put each question's messages below its check; cells that were lost come back at the end."""
    there = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in notebook.cells}
    for question in feedback["questions"]:
        grade_id = graded_cell(homework, question["question"])
        cell = there.get(grade_id)
        if cell is None:
            cell = nbformat.from_dict(_course_cells(homework)[grade_id])
            notebook.cells.append(cell)
            if question["text"]:
                cell.source = _harmless(question["text"])
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=question_text(question))]
    if feedback["notes"]:
        notes = "\n".join(indent(note, "    ") for note in feedback["notes"])
        notebook.cells.append(nbformat.v4.new_markdown_cell(f"Notes on your notebook:\n\n{notes}"))
