"""`course progress`: what is done of a homework, what is left, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.terminal.check import Tell, run_checks
from course_utils.terminal.find_work import Work
from course_utils.terminal.originals import Asked
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
        return [question.id for question in self._of(*statuses)]

    def _of(self, *statuses: str) -> list[Asked]:
        return [row.question for row in self.rows if row.status in statuses]

    @property
    def minutes_left(self) -> float:
        """What the questions that are not done are expected to take."""
        return sum(row.question.minutes for row in self.rows if not row.done)

    def __str__(self) -> str:
        coded = sum(not row.question.in_words for row in self.rows)
        words = len(self.rows) - coded
        lines = [
            f"{self.homework} ({self.notebook})",
            *_lines("public checks pass", self._of("passed"), coded),
            *_lines("not right yet", self._of("failed", "error"), coded, open=True),
            *_lines("not answered", self._of("not answered"), coded, open=True),
        ]
        for row in self.rows:
            if row.status == "waiting":
                lines.append(f"  {row.question.title}: {row.found}")
            elif row.status == "out of time":
                lines.append(f"  {row.question.title}: out of time, so neither right nor wrong ({row.message})")
        if words:
            lines += _lines("in words: written", self._of("written"), words)
            lines += _lines("in words: not written", self._of("not written"), words, open=True)
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
            "waiting": {
                row.question.id: row.report.waits_for for row in self.rows if row.report and row.report.waits_for
            },
            "out_of_time": self.ids("out of time"),
            "written": self.ids("written"),
            "not_written": self.ids("not written"),
            "points": sum(row.question.points for row in self.rows),
            "minutes_left": self.minutes_left,
            "trained_model": self.model,
        }


def standing(work: Work, limit: float, tell: Tell = lambda _: None) -> Standing:
    """Run the notebook's public checks and see where it stands."""
    questions = work.original.questions
    checked = run_checks(work, [question.id for question in questions if not question.in_words], limit, tell)
    model = trained_model(work)
    told = None if model is None else model.remark
    return Standing(work.homework, str(work.path), rows(work, checked, questions), told)


def duration(minutes: float) -> str:
    """Minutes in words: "nothing", "about 45 minutes", "about 3 h 20 min"."""
    if not minutes:
        return "nothing"
    hours, rest = divmod(round(minutes), 60)
    return f"about {hours} h {rest:02d} min" if hours else f"about {rest} minutes"


def _lines(what: str, found: Sequence[Asked], of: int, open: bool = False) -> list[str]:
    """How many there are, and which: in one line, or what is left to do by its title, each in a line of its own."""
    first = f"  {what:<22} {len(found):>2} of {of:<2}"
    if open:
        return [first.rstrip(), *(f"      {question.title}" for question in found)]
    return [f"{first}  {'  '.join(question.numbered for question in found)}".rstrip()]
