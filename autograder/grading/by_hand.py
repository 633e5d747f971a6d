"""`by_hand.csv`: the sheet in which people grade free text, overrule the judge where they see fit, and write comments.

People write it. A run adds rows for new answers and keeps all else as it stands.
"""

from __future__ import annotations

import csv
import difflib
import io
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from autograder.assumptions import Assumption
from autograder.errors import BadInput
from autograder.grading.journal import Outcome
from autograder.grading.late import Deadline
from autograder.grading.tables import csv_text, inert
from autograder.homework import Homework
from autograder.judge.results import HandGrade, Report, Waiver

BY_HAND = "by_hand.csv"
PAGE = "page"  # in the place of a question: a comment on the whole page
COLUMNS = ["student_id", "question", "points", "score", "comment", "answer"]

Grades = Mapping[str, HandGrade]  # by question, or the page
Waivers = Mapping[str, Waiver]  # by case, test or question


@dataclass(frozen=True)
class Sheet:
    """The sheet as it stands on disk; empty where there is none yet."""

    grades: dict[str, dict[str, HandGrade]] = field(default_factory=dict)  # by student and question
    rows: tuple[dict[str, str], ...] = ()
    columns: tuple[str, ...] = tuple(COLUMNS)  # none where people's grades are kept elsewhere
    delimiter: str = ","
    lines: tuple[int, ...] = ()  # where the rows end

    def of(self, student: str) -> Grades:
        """What people gave this student."""
        return self.grades.get(student, {})

    def with_comment(self, student: str, question: str, text: str, score: float | None = None) -> Sheet:
        """The sheet with a person's words on a question or the page; those of before give way, a score stays."""
        rows = {(row["student_id"], row["question"]): row for row in self.rows}
        new = {"comment": text} | ({"score": f"{score:g}"} if score is not None else {})
        rows[student, question] = (
            {"student_id": student, "question": question} | rows.get((student, question), {}) | new
        )
        return replace(self, rows=tuple(rows.values()))

    def assumptions(self, students: Collection[str]) -> Iterator[Assumption]:
        """Rows that people wrote and that change nothing: of a student whom nobody knows, twice, or without a score."""
        last = {(row["student_id"], row["question"]): line for row, line in zip(self.rows, self.lines, strict=True)}
        for row, line in zip(self.rows, self.lines, strict=True):
            student, where = row["student_id"], f"{BY_HAND}:{line}"
            about = f"{where}: {row['question']} of {student}"
            if student not in students and (row["score"].strip() or row["comment"].strip()):
                close = difflib.get_close_matches(student, students, 1)
                meant = f" Did you mean {close[0]}?" if close else ""
                yield Assumption(
                    "by hand", f"{about}: there is no such student, so it counts for nobody.{meant}", "", where
                )
            elif last[student, row["question"]] != line:
                told = f"{about}: the row in line {last[student, row['question']]} is about the same, and counts."
                yield Assumption("by hand", told, "", where)
            elif row["comment"].strip() and not row["score"].strip() and row["question"] != PAGE:
                told = f"{about}: the comment has no score, so the question is as it was."
                yield Assumption("comment", told, "", where, student)

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

    def deadline(self, homework: Homework) -> Deadline | None:
        """When the homework is due and what lateness costs, where this place knows."""

    def settle(self, homework: Homework, outcomes: dict[str, Outcome], fresh: set[str], waived: Waivers) -> Sheet:
        """The same after a run, which found these outcomes; the students in `fresh` handed in something new."""


@dataclass(frozen=True)
class SheetDesk:
    """People's grades in a sheet beside the journal."""

    folder: Path

    def read(self, homework: Homework) -> Sheet:
        """The sheet as it stands."""
        return read_sheet(self.folder, homework)

    def deadline(self, homework: Homework) -> None:
        """A sheet knows none."""

    def settle(self, homework: Homework, outcomes: dict[str, Outcome], fresh: set[str], waived: Waivers) -> Sheet:
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
    points = {PAGE: 0.0} | {asked.id: asked.points for asked in homework.graded}
    rows: list[dict[str, str]] = []
    grades: dict[str, dict[str, HandGrade]] = {}
    lines: list[int] = []
    for row in reader:
        where, question, score = f"{path}:{reader.line_num}", row["question"], _number(row["score"])
        if question not in points or None in row:
            raise BadInput(f"{where}: no question of {homework.name}: `{question}`. Correct the row.")
        if score is not None and question == PAGE:
            raise BadInput(f"{where}: a page has no score of its own. Leave `score` empty, or name the question.")
        if score is not None and not 0 <= score <= points[question]:
            raise BadInput(f"{where}: `{row['score']}` is no score. Write 0 to {points[question]:g}, or nothing.")
        if score is not None or row["comment"].strip():
            grades.setdefault(row["student_id"], {})[question] = HandGrade(score, row["comment"].strip())
        rows.append(row)
        lines.append(reader.line_num)
    return Sheet(grades, tuple(rows), columns, delimiter, tuple(lines))


def _number(text: str) -> float | None:
    """The score as typed, NaN where it is none; None where nothing is typed."""
    try:
        return float(text.replace(",", ".")) if text.strip() else None
    except ValueError:
        return math.nan
