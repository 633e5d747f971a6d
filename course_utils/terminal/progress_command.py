"""`course progress`: what is done of a homework, what is left, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.terminal.check import run_checks
from course_utils.terminal.find_work import Work
from course_utils.terminal.results_table import QuestionRow, rows
from course_utils.terminal.trained_model import trained_model


@dataclass(frozen=True)
class Standing:
    """Where one homework stands."""

    homework: str
    notebook: str
    rows: Sequence[QuestionRow]
    model: str | None = None  # what is to be known of the trained model, where one is to be handed in

    def ids(self, *statuses: str) -> list[str]:
        """The questions of these statuses."""
        return [row.question.id for row in self.rows if row.status in statuses]

    @property
    def minutes_left(self) -> float:
        """What the questions that are not done are expected to take."""
        return sum(row.question.minutes for row in self.rows if not row.done)

    def __str__(self) -> str:
        coded = sum(not row.question.in_words for row in self.rows)
        words = len(self.rows) - coded
        lines = [
            f"{self.homework} ({self.notebook})",
            _line("public checks pass", self.ids("passed"), coded),
            _line("not right yet", self.ids("failed", "error"), coded),
            _line("not answered", self.ids("not answered"), coded),
        ]
        if words:
            lines.append(_line("in words: written", self.ids("written"), words))
            lines.append(_line("in words: not written", self.ids("not written"), words))
        if self.model is not None:
            lines.append(f"  trained model: {self.model or 'it is there.'}")
        return "\n".join([*lines, f"  left: {duration(self.minutes_left)}"])

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "homework": self.homework,
            "notebook": self.notebook,
            "passed": self.ids("passed"),
            "not_right": self.ids("failed", "error"),
            "not_answered": self.ids("not answered"),
            "written": self.ids("written"),
            "not_written": self.ids("not written"),
            "points": sum(row.question.points for row in self.rows),
            "minutes_left": self.minutes_left,
            "trained_model": self.model,
        }


def standing(work: Work, limit: float) -> Standing:
    """Run the notebook's public checks and see where it stands."""
    questions = work.original.questions
    checked = run_checks(work, [question.id for question in questions if not question.in_words], limit)
    model = trained_model(work)
    told = None if model is None else model.remark
    return Standing(work.homework, str(work.path), rows(work, checked, questions), told)


def duration(minutes: float) -> str:
    """Minutes in words: "nothing", "about 45 minutes", "about 3 h 20 min"."""
    if not minutes:
        return "nothing"
    hours, rest = divmod(round(minutes), 60)
    return f"about {hours} h {rest:02d} min" if hours else f"about {rest} minutes"


def _line(what: str, ids: Sequence[str], of: int) -> str:
    return f"  {what:<22} {len(ids):>2} of {of:<2}  {' '.join(ids)}".rstrip()
