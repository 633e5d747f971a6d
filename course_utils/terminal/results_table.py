"""What `course check` and `course progress` show: a notebook's public checks as a table, in words, as JSON."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from course_utils.explain.check_report import DECIDED, LABELS, CheckReport
from course_utils.explain.outcomes import Status
from course_utils.terminal.check import Checked, fault_of, is_late
from course_utils.terminal.find_work import Work
from course_utils.terminal.notebook_file import TEXT_STUB, Notebook
from course_utils.terminal.originals import Asked

NARROWEST = 20  # characters of a message
READABLE = 44  # characters of a message for which titles of sections make room


@dataclass(frozen=True)
class QuestionRow:
    """One question: how it stands, and the first thing that is wrong."""

    question: Asked
    status: Status | Literal["waiting", "written", "not written"]
    found: str  # as in "3 of 4 ok"
    message: str = ""
    report: CheckReport | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do before hidden checks and people look."""
        return self.status in ("passed", "written")

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        report = self.report or CheckReport(self.question.id, [])
        return {
            "question": self.question.id,
            "section": self.question.section,
            "points": self.question.points,
            "minutes": self.question.minutes,
            "in_words": self.question.in_words,
            "status": self.status,
            "message": self.message,
            "mistakes": [{"label": label, "hint": hint} for label, hint in report.hints],
            "checks": [dataclasses.asdict(outcome) for outcome in report.outcomes],
            "hidden_checks_also_cover": list(report.hidden_topics),
        }


def rows(work: Work, checked: Checked, questions: Sequence[Asked]) -> list[QuestionRow]:
    """A row for each of these questions."""
    return [_with_renamed(_row(question, work.notebook, checked), work) for question in questions]


def _with_renamed(row: QuestionRow, work: Work) -> QuestionRow:
    """The row; where nothing is answered under the expected name, with what the cell defines instead."""
    found = work.original.renamed(row.question, work.notebook) if not (row.done or row.question.in_words) else []
    return dataclasses.replace(row, message="; ".join(map(str, found))) if found and not row.message else row


def table(rows: Sequence[QuestionRow], width: int) -> str:
    """The rows below a heading, cut to the width of the terminal: first the titles of sections, then messages."""
    cells = [("question", "worth", "public checks", "first message")]
    cells += [(row.question.title, f"{row.question.points:g}", row.found, row.message) for row in rows]
    a, b, c, d = (max(len(cell[i]) for cell in cells) for i in range(4))
    short = max(len(row.question.numbered) for row in rows)
    a = min(a, max(width - b - c - 6 - min(d, READABLE), short, len(cells[0][0])))
    titles = [cells[0][0], *(_fitting(row.question, a) for row in rows)]
    room = max(width - a - b - c - 6, NARROWEST)
    lines = (
        f"{title:{a}}  {points:>{b}}  {found:{c}}  {_cut(message, room)}"
        for title, (_, points, found, message) in zip(titles, cells, strict=True)
    )
    return "\n".join(line.rstrip() for line in lines)


def _fitting(question: Asked, width: int) -> str:
    """The question with as much of its section as there is room for, its number in any case."""
    cut = _cut(question.title, width)
    return cut if len(cut) > len(question.numbered) + len("...") else question.numbered


def details(rows: Sequence[QuestionRow]) -> str:
    """For what was begun and is not right, exactly what `grader.check` says in the notebook."""
    reports = [row.report for row in rows if row.report and row.report.status in ("failed", "error", "out of time")]
    return "\n\n".join(map(repr, reports))


def verdict(rows: Sequence[QuestionRow], width: int) -> str:
    """How many questions pass, and what the public checks do not look at."""
    coded = [row for row in rows if not row.question.in_words]
    passed = [row for row in coded if row.done]
    lines = [f"{len(passed)} of {len(coded)} questions pass their public checks; {DECIDED}."]
    if late := [row.question.title for row in coded if row.status == "out of time"]:
        lines.append(f"Out of time, so neither right nor wrong: {', '.join(late)}.")
    topics = {row.question.title: row.report.hidden_topics for row in passed if row.report and row.report.hidden_topics}
    if topics:
        lines.append("Hidden checks also cover:")
        for question, covered in topics.items():
            text = f"{question}: {', '.join(covered)}"
            lines.append(textwrap.fill(text, width, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(lines)


def _row(question: Asked, notebook: Notebook, checked: Checked) -> QuestionRow:
    if question.in_words:
        texts = [cell.source.strip() for cell in notebook.with_id(question.id)]
        if any(text not in ("", TEXT_STUB) for text in texts):
            return QuestionRow(question, "written", "written", "a person grades it")
        return QuestionRow(question, "not written", "not written yet", "a person grades it")
    report = checked.reports[question.id]
    fault = "" if report.passed else fault_of(question.id, notebook, checked)
    if fault:
        if is_late(question.id, notebook, checked):
            return QuestionRow(question, "out of time", LABELS["out of time"], fault, report)
        return QuestionRow(question, "error", "cell fails", fault, report)
    first = next((outcome for outcome in report.outcomes if not outcome.passed), None)
    found = LABELS["out of time"] if report.status == "out of time" else report.summary.replace(" checks", "")
    return QuestionRow(
        question,
        "waiting" if report.waits_for else report.status,
        found,
        _first_message(first.message, found) if first else "",
        report,
    )


def _first_message(message: str, found: str) -> str:
    """The message in one line; nothing where the column beside it says the same."""
    return "" if found == LABELS["not answered"] or "waits for" in found else " ".join(message.split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
