"""`autograder export`: a run's grades in the columns that a grade book imports; nobody is dropped without a word."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.builder.write import write
from autograder.errors import BadInput
from autograder.grading.tables import csv_text, inert
from autograder.homework import Homework, read_homework

Row = dict[str, str]
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POSSIBLE = "Points Possible"  # a row of Canvas' files
GRADESCOPE = ("First Name", "Last Name", "SID", "Email")
NBGRADER = (
    "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
    "raw_score", "late_submission_penalty", "score", "max_score",
)  # fmt: skip
IDENTIFIERS = ("ID", "SIS User ID", "SIS Login ID", "SID", "Email", "student_id", "email", "Student", "Name")
CANVAS_USER = re.compile(r".+_(\d+)")  # how a student of a Canvas export is called here


@dataclass(frozen=True)
class Exported:
    """What was written, and who could not be placed."""

    path: Path
    rows: int
    unknown: list[str]  # graded, but not in the roster
    missing: list[str]  # in the roster, but without a submission


@dataclass
class Roster:
    """The people of a course as the other system exported them, and their grades where we have them."""

    columns: list[str]
    people: list[Row]
    grades: list[Row | None] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def export(results: Path, to: str, roster: Path | None, out: Path | None) -> Exported:
    """Write the grades of a results folder for another system; those of unknown students go into a file beside it."""
    homework, grades = _grades(results)
    people = _roster(roster, grades) if roster else Roster([], [{} for _ in grades], list(grades))
    table = FORMATS[to](homework, people)
    path = out or results / f"{to}.csv"
    files = {path: _csv(table).encode()}
    if people.unknown:
        rows = [row for row in grades if row["student_id"] in people.unknown]
        files[path.with_name(f"{path.stem}-unknown.csv")] = _csv(
            [list(rows[0]), *(list(r.values()) for r in rows)]
        ).encode()
    write(files, [])
    missing = [_name(person) for person, grade in zip(people.people, people.grades, strict=True) if grade is None]
    return Exported(path, len(people.people), people.unknown, missing)


def _grades(results: Path) -> tuple[Homework, list[Row]]:
    try:
        homework = read_homework(json.loads((results / "summary.json").read_text())["homework"])
        with open(results / "grades.csv", encoding="utf-8", newline="") as file:
            return homework, list(csv.DictReader(file))
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{results} holds no grades. Give the --out folder of `autograder grade`.") from None


def _roster(path: Path, grades: list[Row]) -> Roster:
    """The roster with everybody's grade beside them, found by any identifier of theirs."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            heads = file.readline()
            file.seek(0)
            delimiter = ";" if heads.count(";") > heads.count(",") else ","  # Canvas asks the user's locale
            reader = csv.DictReader(file, restval="", delimiter=delimiter)
            rows = [{key: value for key, value in row.items() if key} for row in reader]
            roster = Roster(list(reader.fieldnames or []), [row for row in rows if _is_person(row)])
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The roster {path} cannot be read ({error}).") from None
    if not set(IDENTIFIERS) & set(roster.columns):
        raise BadInput(f"The roster {path} has none of the columns {', '.join(IDENTIFIERS)}.")
    by_id: dict[str, Row] = {}
    for row in grades:
        by_id[row["student_id"].lower()] = row
        if matched := CANVAS_USER.fullmatch(row["student_id"]):
            by_id.setdefault(matched[1], row)
    for person in roster.people:
        ids = (person.get(column, "").strip().lower() for column in IDENTIFIERS)
        roster.grades.append(next((by_id[one] for one in ids if one in by_id), None))
    placed = {row["student_id"] for row in roster.grades if row}
    roster.unknown = [row["student_id"] for row in grades if row["student_id"] not in placed]
    return roster


def _is_person(row: Row) -> bool:
    """Canvas has rows about the assignments too: the points possible, and which of them are posted by hand."""
    named = [row[column].strip() for column in IDENTIFIERS if column in row]
    return not named or (any(named) and POSSIBLE not in named)


def _canvas(homework: Homework, roster: Roster) -> list[list[str]]:
    """Canvas' own columns, then the assignment; with the row of points possible that Canvas expects."""
    column = next((name for name in roster.columns if name.startswith(homework.name)), homework.name)
    table = [[*CANVAS, column], [f"    {POSSIBLE}", "", "", "", "", f"{homework.points:g}"]]
    for person, grade in zip(roster.people, roster.grades, strict=True):
        known = person or {"Student": _student(grade), "SIS Login ID": _student(grade)}
        table.append([*(known.get(name, "") for name in CANVAS), grade["total"] if grade else ""])
    return table


def _gradescope(homework: Homework, roster: Roster) -> list[list[str]]:
    """The columns of Gradescope's own grade files."""
    questions = [f"{number}: {asked.id} ({float(asked.points)} pts)" for number, asked in enumerate(homework.graded, 1)]
    table = [[*GRADESCOPE, "Total Score", "Max Points", "Status", *questions]]
    for person, grade in zip(roster.people, roster.grades, strict=True):
        known = person or {"SID": _student(grade)}
        scores = [grade[asked.id] for asked in homework.graded] if grade else [""] * len(homework.graded)
        status = ["Graded" if grade else "Missing"]
        total = [grade["total"] if grade else "", f"{homework.points:g}"]
        table.append([*(known.get(name, "") for name in GRADESCOPE), *total, *status, *scores])
    return table


def _plain(homework: Homework, roster: Roster) -> list[list[str]]:
    """Everything: the roster's columns, then ours."""
    ours = ["student_id", *(asked.id for asked in homework.graded), "total", "status"]
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
        total = grade["total"] if grade else "0"
        names = [person.get("last_name", ""), person.get("first_name", ""), person.get("email", "")]
        student = _student(grade) or person.get("student_id", "")
        table.append([homework.name, "", "", student, *names, total, "0", total, f"{homework.points:g}"])
    return table


FORMATS: dict[str, Callable[[Homework, Roster], list[list[str]]]] = {
    "canvas": _canvas,
    "gradescope": _gradescope,
    "csv": _plain,
    "nbgrader": _nbgrader,
}


def _student(grade: Row | None) -> str:
    return grade["student_id"] if grade else ""


def _name(person: Row) -> str:
    return next((person[name] for name in ("Student", "Email", "SID", "student_id", "Name") if person.get(name)), "?")


def _csv(table: list[list[str]]) -> str:
    return csv_text([inert(cell) for cell in row] for row in table)
