"""How a student sees the results of checks: in HTML in a notebook, as plain text elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

from course_utils.explain.outcomes import CheckOutcome, Status, waiting
from course_utils.explain.sentences import told_once
from course_utils.notebook.palette import STATUS

DECIDED = "points are decided by hidden checks too"  # wherever public checks are told
MOST_HINTS = 2
LABELS: dict[Status, str] = {
    "passed": "ok",
    "failed": "not yet",
    "error": "error",
    "out of time": "out of time",
    "not answered": "not answered yet",
}
WAITS = "waits"  # in place of "not answered yet" where what is missing is an earlier answer


@dataclass(frozen=True)
class CheckReport:
    """The public checks of one question."""

    question: str
    outcomes: Sequence[CheckOutcome]
    hidden_topics: Sequence[str] = ()
    section: str = ""  # its number and title on the page, as in "3.8 The encoder layer"

    def placed(self, section: str, owners: Mapping[str, str]) -> CheckReport:
        """The report under its section; `owners` tells the question that is to define a name."""
        outcomes = [self._owned(outcome, owners.get(outcome.needs, "")) for outcome in self.outcomes]
        return replace(self, outcomes=outcomes, section=section)

    def _owned(self, outcome: CheckOutcome, owner: str) -> CheckOutcome:
        return waiting(outcome.sentence, owner) if owner not in ("", self.question) else outcome

    @property
    def title(self) -> str:
        """The question as headlines call it: "q3_7 (3.8 The encoder layer)"."""
        return titled(self.question, self.section)

    @property
    def status(self) -> Status:
        """The state of the whole question: passed only when every check is."""
        found = {outcome.status for outcome in self.outcomes}
        order: list[Status] = ["error", "failed", "out of time", "not answered"]
        return next((status for status in order if status in found), "passed")

    @property
    def passed(self) -> bool:
        """Whether every public check holds."""
        return self.status == "passed"

    @property
    def summary(self) -> str:
        """One line: "not answered yet", "waits for q1_3", "all 4 checks ok" or "3 of 4 checks ok"."""
        n, ok = len(self.outcomes), sum(outcome.passed for outcome in self.outcomes)
        waits = f"waits for {' and '.join(self.waits_for)}" if self.waits_for else ""
        if not self.begun:
            return waits or LABELS["not answered"]
        told = f"all {n} checks ok" if ok == n else f"{ok} of {n} checks ok"
        return f"{told}; {waits}" if waits else told

    @property
    def word(self) -> str:
        """The status in the word that a badge shows."""
        return WAITS if self.waits_for else LABELS[self.status]

    @property
    def begun(self) -> bool:
        """Whether any check came to a result."""
        return any(outcome.status != "not answered" for outcome in self.outcomes)

    @property
    def waits_for(self) -> list[str]:
        """The earlier questions whose answers are all that is missing here; none where anything else is."""
        left = [outcome for outcome in self.outcomes if not outcome.passed]
        waits = all(outcome.waits_for for outcome in left)
        return list(dict.fromkeys(outcome.waits_for for outcome in left)) if waits else []

    @property
    def hints(self) -> list[tuple[str, str]]:
        """Label and hint of the mistakes that were recognised, each once; of many those that explain most checks."""
        found = Counter((o.mistake or "", o.hint) for o in self.outcomes if o.hint)
        return [pair for pair, _ in found.most_common(MOST_HINTS)]

    @property
    def remarks(self) -> list[str]:
        """What is wrong with the course's own files, each once."""
        return list(dict.fromkeys(o.remark for o in self.outcomes if o.remark))

    @property
    def note(self) -> str:
        """What these checks do not tell."""
        if not self.passed:
            return ""
        topics = f" ({', '.join(self.hidden_topics)})" if self.hidden_topics else ""
        return f"Public checks passed; {DECIDED}{topics}."

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.summary}"]
        for outcome, message in self._told():
            lines.append(f"  [{_word(outcome)}] {outcome.sentence}")
            lines += [f"      {line}" for line in message.splitlines()]
        lines += [f"  Looks like {label}: {hint}" for label, hint in self.hints]
        lines += [f"  {remark}" for remark in self.remarks]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<li style='margin:.35em 0'>{_badge(outcome.status, _word(outcome))} "
            f"{_marked(outcome.sentence)}{_message(message)}</li>"
            for outcome, message in self._told()
        )
        items = f"<ul style='list-style:none;margin:.2em 0;padding:0'>{rows}</ul>" if rows else ""
        hints = "".join(
            _paragraph(f"<strong>Looks like <code>{escape(label)}</code>:</strong> {_marked(hint)}")
            for label, hint in self.hints
        )
        hints += "".join(_paragraph(_marked(remark)) for remark in self.remarks)
        note = _paragraph(f"<em>{escape(self.note)}</em>") if self.note else ""
        return _box(self.title, self.summary, self.status, f"{items}{hints}{note}")

    def _told(self) -> list[tuple[CheckOutcome, str]]:
        """Every check with its message; of a question that was not begun, none but the summary."""
        shown = list(self.outcomes) if self.begun else []
        return list(zip(shown, told_once(outcome.message for outcome in shown), strict=True))


@dataclass(frozen=True)
class Overview:
    """The public checks of a whole notebook, one line a question."""

    name: str
    reports: Sequence[CheckReport]

    @property
    def summary(self) -> str:
        """How many questions pass their public checks."""
        passed = sum(report.passed for report in self.reports)
        return f"{passed} of {len(self.reports)} questions pass their public checks"

    def __repr__(self) -> str:
        lines = [f"  {report.title}: {report.summary}" for report in self.reports]
        return "\n".join([f"{self.name}: {self.summary}", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row' style='text-align:left'>{escape(report.title)}</th>"
            f"<td style='text-align:left'>{_badge(report.status, report.word)} {escape(report.summary)}</td></tr>"
            for report in self.reports
        )
        status: Status = "passed" if all(report.passed for report in self.reports) else "not answered"
        note = _paragraph(f"<em>Public checks only: {DECIDED}.</em>")
        return _box(self.name, self.summary, status, f"<table style='margin:.4em 0'>{rows}</table>{note}")


def titled(question: str, section: str) -> str:
    """A question with its section beside it, where that is known."""
    return f"{question} ({section})" if section else question


def _word(outcome: CheckOutcome) -> str:
    return WAITS if outcome.waits_for else LABELS[outcome.status]


def _badge(status: Status, word: str) -> str:
    return (
        f"<span style='background:{STATUS[status]};color:#fff;border-radius:.6em;padding:.05em .55em;"
        f"font-size:.85em;white-space:nowrap'>{word}</span>"
    )


def _message(message: str) -> str:
    if not message:
        return ""
    return f"<div style='margin:.15em 0 0 1em;white-space:pre-wrap'>{_marked(message)}</div>"


def _marked(text: str) -> str:
    """Plain text for a page, with `names in backticks` set as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _paragraph(body: str) -> str:
    return f"<p style='margin:.4em 0'>{body}</p>"


def _box(name: str, summary: str, status: Status, body: str) -> str:
    """A region that a screen reader announces by its summary; its edge repeats the status in colour."""
    return (
        f"<section role='region' aria-label='{escape(name)}: {escape(summary)}' style='color:inherit;"
        f"border-left:4px solid {STATUS[status]};padding:.2em .8em'>"
        f"<p style='margin:0'><strong>{escape(name)}</strong>: {escape(summary)}</p>{body}</section>"
    )
