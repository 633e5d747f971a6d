"""`autograder report DIR`: the class on one page that needs no network and can run nothing that a student wrote."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape

from autograder.builder.write import write
from autograder.classroom.similarity import Pair, answer_text, similar_pairs
from autograder.classroom.statistics import case_items, misconceptions, question_items, spread
from autograder.classroom.suspicion import odd_things
from autograder.errors import BadInput
from autograder.grading.by_hand import read_sheet
from autograder.grading.collect import collect
from autograder.grading.journal import JOURNAL, Journal, Outcome, homework_of
from autograder.grading.outputs import reports_of
from autograder.homework import Homework, read_homework
from autograder.judge.results import Report
from autograder.judge.verdicts import Verdict

HERE = Path(__file__).parent
PAGE = "report.html"
TROUBLE = (Verdict.INFRASTRUCTURE, Verdict.TIMEOUT, Verdict.MEMORY, Verdict.CRASHED)


def write_report(out: Path, submissions: Path | None = None) -> Path:
    """Write `report.html` into a folder that `autograder grade` filled; similarity needs the submissions too."""
    homework, outcomes = _read(out)
    sheet = read_sheet(out, homework)
    reports = reports_of(homework, outcomes, sheet)
    texts = _texts(submissions, homework) if submissions is not None else {}
    page = render(homework, outcomes, reports, texts)
    try:
        write({out / PAGE: page.encode()}, [], sync=False)
    except OSError as error:
        raise BadInput(f"{out / PAGE} cannot be written ({error.strerror}). Make room and try again.") from None
    return out / PAGE


def render(
    homework: Homework, outcomes: Mapping[str, Outcome], reports: Mapping[str, Report], texts: Mapping[str, str]
) -> str:
    """The page."""
    points = sum(asked.points for asked in homework.graded)
    graded = [reports[student].total for student, outcome in outcomes.items() if outcome.status == "graded"]
    script = (HERE / "page.js").read_text(encoding="utf-8")
    pairs: list[Pair] = similar_pairs(texts, homework) if texts else []
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=select_autoescape(default=True), trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        homework=homework.name,
        points=points,
        spread=spread(graded, points),
        submissions=len(outcomes),
        questions=question_items(reports),
        titles=homework.titles,
        cases=case_items(outcomes, reports),
        misconceptions=misconceptions(outcomes),
        attention=_attention(outcomes, texts),
        pairs=pairs,
        compared=bool(texts),
        students=[(student, outcomes[student].status, report) for student, report in reports.items()],
        asked=[asked.id for asked in homework.graded],
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _read(out: Path) -> tuple[Homework, dict[str, Outcome]]:
    homework = read_homework(homework_of(out))
    with Journal(out / JOURNAL, homework.name) as journal:
        return homework, dict(journal.outcomes)


def _texts(submissions: Path, homework: Homework) -> dict[str, str]:
    return {entry.student: answer_text(entry, homework) for entry in collect(submissions, homework.name)}


def _attention(outcomes: Mapping[str, Outcome], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """The submissions that a person should look at, each with the reasons."""
    found = []
    for student in sorted(outcomes):
        outcome = outcomes[student]
        reasons = []
        if outcome.status != "graded":
            reasons.append(f"status: {outcome.status}")
        for verdict in TROUBLE:
            questions = sorted({case.question for case in outcome.cases if case.verdict is verdict})
            reasons += [f"{verdict} in {', '.join(questions)}"] if questions else []
        reasons += [f"code: {told}" for told in odd_things(texts.get(student, ""))]
        reasons += [f"notebook: {note}" for note in outcome.notes[:5]]
        if reasons:
            found.append({"student": student, "reasons": reasons, "urgent": outcome.status != "graded"})
    return sorted(found, key=lambda entry: not entry["urgent"])
