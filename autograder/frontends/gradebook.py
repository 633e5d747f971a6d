"""nbgrader's gradebook, through nbgrader's own API: the judge's scores go in, people's scores stay and come out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any

import nbformat
import sqlalchemy
import sqlalchemy.exc
from nbgrader.api import Grade, Gradebook, MissingEntry, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.builder.notebooks import student_notebook
from autograder.errors import BadInput
from autograder.grading.by_hand import Sheet, Waivers
from autograder.grading.decided import Decided
from autograder.grading.journal import Outcome
from autograder.grading.late import Deadline, Extension, LatePolicy
from autograder.grading.outputs import report_of
from autograder.homework import Explanation, Homework
from autograder.judge.results import HandGrade

CONFIG = "nbgrader_config.py"


def graded_cell(homework: Homework, question: str) -> str:
    """The id of the cell that carries a question's points in nbgrader: the check's, or the free text's own."""
    return question if any(asked.id == question for asked in homework.explanations) else f"test_{question}"


def add_assignment(url: str, homework: Homework) -> None:
    """Tell a gradebook about a homework and its cells, as `nbgrader generate_assignment` does."""
    with _open(url) as gradebook:
        gradebook.update_or_create_assignment(homework.name)
    told = {"notebook": homework.name, "assignment": homework.name, "db_url": url}
    try:
        SaveCells().preprocess(student_notebook(homework), {"nbgrader": told})
    except RuntimeError as error:  # nbgrader's: cells came or went although there are submissions
        raise BadInput(f"The gradebook {_shown(url)} has submissions to an older {homework.name}. {error}.") from None


class GradebookDesk:
    """Where people's scores are kept when a run is given a gradebook: the place of `by_hand.csv`."""

    def __init__(self, place: str) -> None:
        """`place` is the URL of the database, or an nbgrader course folder, whose late policy then counts too."""
        self._config = Config()
        self._course: CourseDirectory | None = None
        self.url = place
        if "://" not in place:
            folder = Path(place).resolve()
            if not (folder / CONFIG).is_file():
                raise BadInput(f"{place} is neither a database URL nor an nbgrader course (it has no {CONFIG}).")
            self._config = PyFileConfigLoader(CONFIG, path=str(folder)).load_config()
            self._config.CourseDirectory.root = str(folder)
            self._course = CourseDirectory(config=self._config)
            self.url = self._course.db_url

    def read(self, homework: Homework) -> Sheet:
        """What people gave so far; a homework that the gradebook does not know is added to it."""
        with _open(self.url) as gradebook:
            try:
                notebook = gradebook.find_notebook(homework.name, homework.name)
            except MissingEntry:
                notebook = None
            if notebook is not None:
                _check_points(notebook, homework, self.url)
                return Sheet({s.student.id: _by_people(s, homework) for s in notebook.submissions}, columns=())
        add_assignment(self.url, homework)
        return Sheet(columns=())

    def deadline(self, homework: Homework) -> Deadline | None:
        """The assignment's due date, students' extensions, and the late policy of the course's configuration."""
        with _open(self.url) as gradebook:
            try:
                due = gradebook.find_assignment(homework.name).duedate
                submissions = gradebook.assignment_submissions(homework.name)
            except MissingEntry:
                return None
            if due is None:
                return None
            later = {
                s.student.id: Extension((due + s.extension).replace(tzinfo=UTC)) for s in submissions if s.extension
            }
            return Deadline(due.replace(tzinfo=UTC), self._policy(), later)

    def _policy(self) -> LatePolicy:
        told = self._config.get("LatePenalty", {})
        return LatePolicy(**{name: float(told[name]) for name in LatePolicy.__dataclass_fields__ if name in told})

    def settle(self, homework: Homework, outcomes: dict[str, Outcome], fresh: set[str], waived: Waivers) -> Sheet:
        """Enter the judge's scores, of one student after the other; what people gave is untouched, and returned."""
        with _open(self.url) as gradebook:
            known = {student.id for student in gradebook.students}
            for student, outcome in outcomes.items():
                if outcome.status == "graded" or outcome.void:
                    if student not in known:
                        gradebook.add_student(student)
                    self._enter(gradebook, homework, outcome, student in fresh, Decided(waived=waived))
        if self._course is not None:
            self._penalties(homework, outcomes)
        return self.read(homework)

    def _enter(self, gradebook: Gradebook, homework: Homework, outcome: Outcome, fresh: bool, people: Decided) -> None:
        timestamp = self._timestamp(homework.name, outcome.student)
        told = {"timestamp": timestamp} if timestamp else {}
        gradebook.update_or_create_submission(homework.name, outcome.student, **told)
        notebook = gradebook.find_submission_notebook(homework.name, homework.name, outcome.student)
        grades = {grade.cell.name: grade for grade in notebook.grades}
        report, unreadable = report_of(homework, outcome, people), outcome.void
        for asked in homework.graded:
            by_person = isinstance(asked, Explanation) and not unreadable
            score = None if by_person else report.question(asked.id).judged
            _set(grades[graded_cell(homework, asked.id)], score, fresh)
        comments = {comment.cell.name: comment for comment in notebook.comments}
        for asked in homework.explanations:
            answered = report.question(asked.id).answered
            comments[asked.id].auto_comment = None if answered else "No response."
        gradebook.db.commit()

    def _timestamp(self, assignment: str, student: str) -> Any:
        if self._course is None:
            return None
        place = self._course.format_path(self._course.submitted_directory, student, assignment)
        return self._course.get_existing_timestamp(place)

    def _penalties(self, homework: Homework, outcomes: dict[str, Outcome]) -> None:
        """Late penalties by nbgrader's own step, with the plugin of the course's configuration."""
        for student, outcome in outcomes.items():
            if outcome.status == "graded" or outcome.void:
                told = {"notebook": homework.name, "assignment": homework.name, "student": student, "db_url": self.url}
                step = AssignLatePenalties(config=self._config)
                step.preprocess(nbformat.v4.new_notebook(), {"nbgrader": told})


def _set(grade: Grade, score: float | None, fresh: bool) -> None:
    """The judge's score. A person's score stays, and is flagged for another look when the submission is a new one."""
    changed = grade.auto_score != score
    grade.auto_score = score
    if grade.manual_score is None:
        grade.needs_manual_grade = score is None
    elif changed or fresh:
        grade.needs_manual_grade = True


def _by_people(notebook: SubmittedNotebook, homework: Homework) -> dict[str, HandGrade]:
    questions = {graded_cell(homework, asked.id): asked.id for asked in homework.graded}
    comments = {comment.cell.name: comment.manual_comment or "" for comment in notebook.comments}
    found = {}
    for grade in notebook.grades:
        question = questions.get(grade.cell.name, "")
        score, comment = grade.manual_score, comments.get(question, "")
        if question and (score is not None or comment):
            found[question] = HandGrade(None if score is None else score + (grade.extra_credit or 0.0), comment)
    return found


def _check_points(notebook: Any, homework: Homework, url: str) -> None:
    there = {cell.name: cell.max_score for cell in notebook.grade_cells}
    here = {graded_cell(homework, asked.id): float(asked.points) for asked in homework.graded}
    if there != here:
        different = ", ".join(sorted(name for name in {*there, *here} if there.get(name) != here.get(name)))
        raise BadInput(
            f"The gradebook {_shown(url)} has other questions or points for {homework.name} ({different}). "
            "Run `autograder nbgrader init` on its course again."
        )


@contextmanager
def _open(url: str) -> Iterator[Gradebook]:
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"  # a new one needs alembic
    try:
        with Gradebook(url) as gradebook:
            yield gradebook
    except ImportError as error:
        remedy = "For PostgreSQL: pip install 'psycopg[binary]'."
        raise BadInput(f"The gradebook {_shown(url)} needs a database driver ({error}). {remedy}") from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        reason = str(error).splitlines()[0]
        told = f"The gradebook {_shown(url)} cannot be used ({reason}). Nothing is lost: run again later."
        raise BadInput(told) from None
    finally:
        os.environ["PATH"] = before


def _shown(url: str) -> str:
    """The address without its password."""
    try:
        return sqlalchemy.make_url(url).render_as_string(hide_password=True)
    except sqlalchemy.exc.ArgumentError:
        return url
