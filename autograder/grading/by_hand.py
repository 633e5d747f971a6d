"""`by_hand.csv`: the sheet in which people grade free text, and overrule the judge where they see fit.

It is the only file of a run that people write. A run adds rows for new answers and keeps all else as it stands.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from autograder.errors import BadInput
from autograder.grading.journal import Outcome
from autograder.grading.tables import csv_text, inert
from autograder.homework import Homework
from autograder.judge.results import HandGrade, Report

BY_HAND = "by_hand.csv"
COLUMNS = ["student_id", "question", "points", "score", "comment", "answer"]

Grades = Mapping[str, HandGrade]  # by question


@dataclass(frozen=True)
class Sheet:
    """The sheet as it stands on disk; empty where there is none yet."""

    grades: dict[str, dict[str, HandGrade]] = field(default_factory=dict)  # by student and question
    rows: tuple[dict[str, str], ...] = ()
    columns: tuple[str, ...] = tuple(COLUMNS)  # none where people's grades are kept elsewhere
    delimiter: str = ","

    def of(self, student: str) -> Grades:
        """What people gave this student."""
        return self.grades.get(student, {})

    def text(self, reports: Mapping[str, Report]) -> str:
        """The sheet with a row for every free-text answer; "" where there is nothing to grade by hand."""
        rows = {(row["student_id"], row["question"]): row for row in self.rows}
        for student, report in reports.items():
            for result in report.questions:
                if result.text is not None:
                    new = {"student_id": student, "question": result.question, "points": f"{result.points:g}"}
                    new["answer"] = str(inert(result.text))
                    rows[student, result.question] = rows.get((student, result.question), {}) | new
        if not rows or not self.columns:
            return ""
        table = [self.columns, *([row.get(column, "") for column in self.columns] for row in rows.values())]
        return csv_text(table, self.delimiter, quote_all=True)


class Desk(Protocol):
    """Where people's grades are kept."""

    def read(self, homework: Homework) -> Sheet:
        """What people gave so far."""

    def settle(self, homework: Homework, outcomes: dict[str, Outcome], fresh: set[str]) -> Sheet:
        """The same after a run, which found these outcomes; the students in `fresh` handed in something new."""


@dataclass(frozen=True)
class SheetDesk:
    """People's grades in a sheet beside the journal."""

    folder: Path

    def read(self, homework: Homework) -> Sheet:
        """The sheet as it stands."""
        return read_sheet(self.folder, homework)

    def settle(self, homework: Homework, outcomes: dict[str, Outcome], fresh: set[str]) -> Sheet:
        """The sheet again: people may have gone on grading meanwhile."""
        return read_sheet(self.folder, homework)


def read_sheet(folder: Path, homework: Homework) -> Sheet:
    """The sheet in that folder; raises `BadInput` with the line of anything that cannot be a score."""
    path = folder / BY_HAND
    if not path.is_file():
        return Sheet()
    with open(path, encoding="utf-8-sig", newline="") as file:
        text = file.read()
    delimiter = ";" if text.startswith(("student_id;", '"student_id";')) else ","  # as some spreadsheets save it
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    try:
        return _read_rows(reader, path, homework, delimiter)
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: not a row of a CSV file ({error}). Correct the row.") from None


def _read_rows(reader: csv.DictReader[str], path: Path, homework: Homework, delimiter: str) -> Sheet:
    columns = tuple(reader.fieldnames or ())
    if not set(COLUMNS) <= set(columns):
        raise BadInput(f"{path}:1: these columns are needed: {', '.join(COLUMNS)}.")
    points = {asked.id: asked.points for asked in homework.graded}
    rows: list[dict[str, str]] = []
    grades: dict[str, dict[str, HandGrade]] = {}
    for row in reader:
        where, question, score = f"{path}:{reader.line_num}", row["question"], _number(row["score"])
        if question not in points or None in row:
            raise BadInput(f"{where}: no question of {homework.name}: `{question}`. Correct the row.")
        if score is not None:
            if not 0 <= score <= points[question]:
                raise BadInput(f"{where}: `{row['score']}` is no score. Write 0 to {points[question]:g}, or nothing.")
            grades.setdefault(row["student_id"], {})[question] = HandGrade(score, row["comment"])
        rows.append(row)
    return Sheet(grades, tuple(rows), columns, delimiter)


def _number(text: str) -> float | None:
    """The score as typed, NaN where it is none; None where nothing is typed."""
    try:
        return float(text.replace(",", ".")) if text.strip() else None
    except ValueError:
        return math.nan
