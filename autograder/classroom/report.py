"""`autograder report DIR`: the class on one page that needs no network and can run nothing that a student wrote."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape

from autograder.assumptions import KINDS, Assumption, by_kind
from autograder.classroom.handed import Handed, handed_in
from autograder.classroom.similarity import fingerprints, near_groups, rare_pairs
from autograder.classroom.statistics import case_items, misconceptions, question_items, spread
from autograder.classroom.suspicion import look
from autograder.errors import BadInput
from autograder.grading.by_hand import SheetDesk
from autograder.grading.collect import collect
from autograder.grading.decided import decided
from autograder.grading.journal import JOURNAL, MISSING, Class, Journal, Outcome, homework_of
from autograder.grading.outputs import all_assumed, page_names, reports_of, status_of, ungraded
from autograder.grading.recompute import outdated
from autograder.homework import Homework, read_homework
from autograder.judge.results import Report, Waiver
from autograder.judge.verdicts import Verdict
from autograder.write import write

HERE = Path(__file__).parent
PAGE = "report.html"
TROUBLE = (Verdict.INFRASTRUCTURE, Verdict.TIMEOUT, Verdict.MEMORY, Verdict.CRASHED)


def write_report(out: Path, submissions: Path | None = None) -> Path:
    """Write `report.html` into a folder that `autograder grade` filled; similarity needs the submissions too."""
    homework, outcomes, of_class = _read(out)
    people = decided(out, homework, SheetDesk(out))
    people = replace(people, outdated=outdated(homework, outcomes))
    reports = reports_of(homework, outcomes, people)
    texts = _texts(submissions, homework) if submissions is not None else {}
    assumed = all_assumed(outcomes, people, of_class.assumptions)
    page = render(homework, outcomes, reports, texts, assumed, people.waived)
    try:
        write({out / PAGE: page.encode()}, [], sync=False)
    except OSError as error:
        raise BadInput(f"{out / PAGE} cannot be written ({error.strerror}). Make room and try again.") from None
    return out / PAGE


def render(
    homework: Homework,
    outcomes: Mapping[str, Outcome],
    reports: Mapping[str, Report],
    texts: Mapping[str, Handed | str],
    assumed: Iterable[Assumption] = (),
    waived: Mapping[str, Waiver] | None = None,
) -> str:
    """The page; of a student's code there may be the cells, or one text."""
    handed = {student: Handed({"code": it}) if isinstance(it, str) else it for student, it in texts.items()}
    prints = fingerprints({student: it.text for student, it in handed.items()}, homework) if handed else {}
    points = homework.points
    graded = [reports[student].total for student, outcome in outcomes.items() if outcome.status == "graded"]
    script = (HERE / "page.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=select_autoescape(default=True), trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        homework=homework.name,
        points=points,
        spread=spread(graded, points),
        submissions=sum(outcome.status != MISSING for outcome in outcomes.values()),
        missing=sum(outcome.status == MISSING for outcome in outcomes.values()),
        assumed=by_kind(assumed),
        kinds=KINDS,
        pages=page_names(outcomes),
        questions=question_items(reports),
        titles=homework.sections,
        cases=case_items(outcomes, reports),
        misconceptions=misconceptions(outcomes, reports),
        attention=_attention(outcomes, handed),
        groups=near_groups(prints),
        pairs=rare_pairs(prints),
        compared=bool(texts),
        students=[(student, status_of(outcomes[student]), report) for student, report in reports.items()],
        dated=any(report.handed or report.late for report in reports.values()),
        waived=waived or {},
        ungraded=ungraded(reports),
        asked=[asked.id for asked in homework.graded],
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _read(out: Path) -> tuple[Homework, dict[str, Outcome], Class]:
    homework = read_homework(homework_of(out))
    with Journal(out / JOURNAL, homework.name) as journal:
        return homework, journal.everybody, journal.of_class


def _texts(submissions: Path, homework: Homework) -> dict[str, Handed]:
    return {entry.student: handed_in(entry, homework) for entry in collect(submissions, homework)}


def _attention(outcomes: Mapping[str, Outcome], handed: Mapping[str, Handed]) -> list[dict[str, Any]]:
    """The submissions that a person should look at, each with the reasons."""
    found = []
    for student in sorted(outcomes):
        outcome = outcomes[student]
        reasons = []
        if outcome.status == MISSING:  # told on top
            continue
        if outcome.status != "graded":
            reasons.append(f"status: {outcome.status}")
        for verdict in TROUBLE:
            questions = sorted({case.question for case in outcome.cases if case.verdict is verdict})
            reasons += [f"{verdict} in {', '.join(questions)}"] if questions else []
        code = handed.get(student, Handed())
        odd, no_python = look(code.cells)
        reasons += [f"code: {told}" for told in (*odd, *_some(no_python), *_some(code.unread))]
        reasons += [f"notebook: {note}" for note in outcome.notes[:5]]
        if reasons:
            found.append({"student": student, "reasons": reasons, "urgent": outcome.status != "graded"})
    return sorted(found, key=lambda entry: not entry["urgent"])


def _some(told: Sequence[str], most: int = 10) -> list[str]:
    """The first few, and how many more there are."""
    return [*told[:most], *([f"and {len(told) - most} more cells like these"] if len(told) > most else [])]
