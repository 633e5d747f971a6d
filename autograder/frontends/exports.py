"""`autograder export`: a run's grades in the columns that a grade book imports; nobody is dropped without a word.

A grade goes to the one person of the roster who bears its student's id, character by character; in e-mail addresses
alone A to Z count as a to z. A student of a Canvas export, `<name>_<user>`, is the person with that ID and that name.
Who fits several, or shares a grade with another, gets none and is named.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.errors import BadInput
from autograder.grading.journal import MISSING
from autograder.grading.outputs import AFTER_QUESTIONS, PUBLIC_ONLY
from autograder.grading.roster import POSSIBLE, Row, fitting, possible_points, read_people, shown
from autograder.grading.tables import csv_text, inert, named
from autograder.homework import Homework, read_homework
from autograder.write import write

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
GRADESCOPE = ("First Name", "Last Name", "SID", "Email")
NBGRADER = (
    "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
    "raw_score", "late_submission_penalty", "score", "max_score",
)  # fmt: skip
ASSIGNMENT = re.compile(r"(.+?) \(([0-9]+)\)")  # how Canvas heads a column: HW1 Attention (48213)


@dataclass(frozen=True)
class Exported:
    """What was written, and who could not be placed."""

    path: Path
    rows: int
    unknown: list[str]  # graded, but not in the roster
    missing: list[str]  # in the roster, but without a submission
    refused: list[str] = field(default_factory=list)  # in the roster, left out: the grade may be another's
    notes: list[str] = field(default_factory=list)  # what is to be known before the file is imported


@dataclass
class Roster:
    """The people of a course as the other system exported them, and their grades where we have them."""

    columns: list[str]
    people: list[Row]
    grades: list[Row | None] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    possible: Row = field(default_factory=dict)  # Canvas' row of points possible
    column: str | None = None  # the assignment's in Canvas, as it was asked for
    notes: list[str] = field(default_factory=list)


def export(results: Path, to: str, roster: Path | None, out: Path | None, column: str | None = None) -> Exported:
    """Write the grades of a results folder for another system; those of unknown students go into a file beside it."""
    homework, grades = _grades(results)
    _refuse_previews(grades)
    people = _roster(roster, grades) if roster else Roster([], [{} for _ in grades], list(grades))
    people.column = column
    people.notes += _not_final(homework, grades)
    table = FORMATS[to](homework, people)
    path = out or results / f"{to}.csv"
    files = {path: _csv(table).encode()}
    if people.unknown:
        rows = [row for row in grades if row["student_id"] in people.unknown]
        files[path.with_name(f"{path.stem}-unknown.csv")] = _csv(
            [list(rows[0]), *(list(r.values()) for r in rows)]
        ).encode()
    write(files, [])
    missing = [shown(person) for person, grade in zip(people.people, people.grades, strict=True) if grade is None]
    return Exported(path, len(people.people), people.unknown, missing, people.refused, people.notes)


def _refuse_previews(grades: list[Row]) -> None:
    """What only public checks have looked at is no grade, and goes nowhere."""
    previews = [row["student_id"] for row in grades if row["status"] == PUBLIC_ONLY]
    if previews:
        raise BadInput(
            f"{len(previews)} of {len(grades)} students were graded with --public-only, which is a preview and no "
            f"grade: {named(previews)}. Grade them without it first; nothing is written."
        )


def _not_final(homework: Homework, grades: list[Row]) -> list[str]:
    """What the grades lack: points that nobody has graded yet, and students who are not graded to the end."""
    asked = {question.id: question.points for question in homework.graded}
    graded = [row for row in grades if any(row.get(question) for question in asked)]
    waiting = {question: sum(not row.get(question) for row in graded) for question in asked}
    notes = []
    if lacking := {question: count for question, count in waiting.items() if count}:
        points = sum(asked[question] for question in lacking)
        told = ", ".join(f"{question} of {count}" for question, count in lacking.items())
        notes.append(f"Not graded yet, and not in the scores: up to {points:g} points ({told} students).")
    for status, meaning in (("partial", "graded in part"), ("infrastructure", "not graded for a fault of ours")):
        if students := [row["student_id"] for row in grades if row["status"] == status]:
            notes.append(f"Not final, since {meaning}: {named(students)}.")
    if old := [row["student_id"] for row in grades if row.get("outdated")]:
        notes.append(f"With scores of an earlier suite: {named(old)}. `autograder grade` brings them up to date.")
    return notes


def _grades(results: Path) -> tuple[Homework, list[Row]]:
    try:
        homework = read_homework(json.loads((results / "summary.json").read_text())["homework"])
        with open(results / "grades.csv", encoding="utf-8", newline="") as file:
            return homework, [row for row in csv.DictReader(file) if row["status"] != MISSING]
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{results} holds no grades. Give the --out folder of `autograder grade`.") from None


def _roster(path: Path, grades: list[Row]) -> Roster:
    """The roster with everybody's grade beside them, found by any identifier of theirs."""
    roster = Roster(*read_people(path))
    roster.possible = possible_points(path)
    _place(roster, grades)
    placed = {row["student_id"] for row in roster.grades if row}
    roster.unknown = [row["student_id"] for row in grades if row["student_id"] not in placed]
    return roster


def _place(roster: Roster, grades: list[Row]) -> None:
    """Everybody's grade, where it is one and theirs alone; who cannot be told from another is taken off the roster."""
    found = fitting(roster.people, [row["student_id"] for row in grades])
    wanted = Counter(student for students in found for student in students)
    by_student = {row["student_id"]: row for row in grades}
    people = []
    for person, students in zip(roster.people, found, strict=True):
        if len(students) > 1 or any(wanted[student] > 1 for student in students):
            roster.refused.append(f"{shown(person)} ({', '.join(sorted(students))})")
            continue
        people.append(person)
        roster.grades.append(by_student[students.pop()] if students else None)
    roster.people = people


def _canvas(homework: Homework, roster: Roster) -> list[list[str]]:
    """Canvas' own columns, then the assignment; with the row of points possible that Canvas expects."""
    column = _canvas_column(homework, roster)
    points = roster.possible.get(column, "").strip() or f"{homework.points:g}"
    if _number(points) != homework.points:
        roster.notes.append(f"Canvas has {points} points possible in {column}, the homework {homework.points:g}.")
    table = [[*CANVAS, column], [f"    {POSSIBLE}", "", "", "", "", points]]
    for person, grade in zip(roster.people, roster.grades, strict=True):
        known = person or {"Student": _student(grade), "SIS Login ID": _student(grade)}
        table.append([*(known.get(name, "") for name in CANVAS), _final(grade)])
    return table


def _canvas_column(homework: Homework, roster: Roster) -> str:
    """The assignment's column: the one asked for, else the one that bears the homework's name or number; else new."""
    ours = [name for name in roster.columns if ASSIGNMENT.fullmatch(name) or _words(name) == _words(homework.name)]
    if roster.column is not None:
        wanted = roster.column.strip()
        meant = [name for name in ours if wanted in (name, *_parts(name)) or _words(wanted) == _words(_parts(name)[0])]
        if len(meant) != 1:
            raise BadInput(f"`{wanted}` is no single column of the roster. It has: {'; '.join(ours) or 'none'}.")
        return meant[0]
    own, number = _words(homework.name), re.sub(r"\D.*", "", homework.name.removeprefix("hw"))
    numbered = re.compile(rf"(hw|homework|assignment) ?0*{number}\b")
    by_name = [name for name in ours if f"{_words(name)} ".startswith(f"{own} ")]
    meant = by_name or [name for name in ours if numbered.match(_words(name))]
    if len(meant) > 1:
        raise BadInput(f"Several columns of the roster may be {homework.name}: {'; '.join(meant)}. Give --column.")
    if meant:
        roster.notes.append(f"Column: {meant[0]}.")
        return meant[0]
    if ours:
        roster.notes.append(
            f"No column of the roster is called like {homework.name}, so Canvas will make a new assignment. --column "
            f"chooses one of: {'; '.join(ours)}."
        )
    return homework.name


def _parts(column: str) -> tuple[str, str]:
    """An assignment's name and its number in Canvas."""
    matched = ASSIGNMENT.fullmatch(column)
    return (matched[1], matched[2]) if matched else (column, "")


def _words(name: str) -> str:
    """A name as it is compared: words in small letters."""
    return re.sub(r"[\W_]+", " ", name).strip().lower()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _gradescope(homework: Homework, roster: Roster) -> list[list[str]]:
    """The columns of Gradescope's own grade files."""
    questions = [f"{number}: {asked.id} ({float(asked.points)} pts)" for number, asked in enumerate(homework.graded, 1)]
    table = [[*GRADESCOPE, "Total Score", "Max Points", "Status", *questions]]
    for person, grade in zip(roster.people, roster.grades, strict=True):
        known = person or {"SID": _student(grade)}
        scores = [grade[asked.id] for asked in homework.graded] if grade else [""] * len(homework.graded)
        status = ["Graded" if grade else "Missing"]
        total = [_final(grade), f"{homework.points:g}"]
        table.append([*(known.get(name, "") for name in GRADESCOPE), *total, *status, *scores])
    return table


def _plain(homework: Homework, roster: Roster) -> list[list[str]]:
    """Everything: the roster's columns, then ours."""
    ours = ["student_id", *(asked.id for asked in homework.graded), *AFTER_QUESTIONS]
    theirs = [column for column in roster.columns if column not in ours]
    table = [[*theirs, *ours]]
    for person, grade in zip(roster.people, roster.grades, strict=True):
        row = grade or {"student_id": person.get("student_id", "")}
        table.append([*(person.get(name, "") for name in theirs), *(row.get(name, "") for name in ours)])
    return table


def _nbgrader(homework: Homework, roster: Roster) -> list[list[str]]:
    """The columns of `nbgrader export`."""
    table = [list(NBGRADER)]
    for person, grade in zip(roster.people, roster.grades, strict=True):
        raw, penalty = (grade["total"], grade.get("penalty") or "0") if grade else ("0", "0")
        names = [person.get("last_name", ""), person.get("first_name", ""), person.get("email", "")]
        student = _student(grade) or person.get("student_id", "")
        scores = [raw, penalty, _final(grade) or "0", f"{homework.points:g}"]
        table.append([homework.name, "", (grade or {}).get("handed_in", ""), student, *names, *scores])
    return table


FORMATS: dict[str, Callable[[Homework, Roster], list[list[str]]]] = {
    "canvas": _canvas,
    "gradescope": _gradescope,
    "csv": _plain,
    "nbgrader": _nbgrader,
}


def _final(grade: Row | None) -> str:
    """What counts in the end; grades of an earlier version know no lateness."""
    return (grade.get("final") or grade["total"]) if grade else ""


def _student(grade: Row | None) -> str:
    return grade["student_id"] if grade else ""


def _csv(table: list[list[str]]) -> str:
    return csv_text([inert(cell) for cell in row] for row in table)
