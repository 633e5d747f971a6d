"""`autograder recompute`: scores from the facts in the journal and the points and weights as they stand now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.grading.by_hand import Desk, SheetDesk
from autograder.grading.changes import Change, read_grades, score_changes, told, written_grades
from autograder.grading.journal import JOURNAL, Journal, Outcome, homework_of
from autograder.grading.outputs import grades_csv, reports_of, write_outputs
from autograder.grading.task import suite_digest
from autograder.homework import read_homework
from autograder.judge.tools import tools


@dataclass(frozen=True)
class Recomputed:
    """What came out, or would."""

    homework: str
    students: int
    changes: list[Change]
    outdated: list[str]  # students whose facts come from another suite than today's
    applied: bool


def recompute(
    out: Path, dry_run: bool = False, tell: Callable[[str], None] = print, desk: Desk | None = None
) -> Recomputed:
    """Tell whose score changes, then write grades and pages anew; nothing of a student's is run."""
    homework = read_homework(homework_of(out))
    desk = desk or SheetDesk(out)
    by_hand = desk.read(homework)
    with Journal(out / JOURNAL, homework.name) as journal:
        outcomes = reweighed(journal.outcomes, homework.name)
        reports = reports_of(homework, outcomes, by_hand)
        changes = score_changes(written_grades(out), read_grades(grades_csv(homework, outcomes, reports)))
        outdated = [s for s, o in outcomes.items() if not o.suite.startswith(suite_digest(homework.name))]
        tell(told(changes))
        if outdated:
            tell(
                f"{len(outdated)} of {len(outcomes)} submissions were graded with another suite than today's. "
                "Their cases count as they came out then; `autograder grade` runs them anew."
            )
        if not dry_run:
            keep(journal, outcomes)
            by_hand = desk.settle(homework, journal.outcomes, set())
            write_outputs(homework, journal.outcomes, out, by_hand)
    return Recomputed(homework.name, len(outcomes), changes, outdated, not dry_run)


def reweighed(outcomes: Mapping[str, Outcome], homework: str) -> dict[str, Outcome]:
    """The outcomes with the weights that the suite has now; a case that it no longer has keeps its own."""
    weights = {case.id: case.weight for case in tools(homework)[1].cases}

    def weighed(outcome: Outcome) -> Outcome:
        cases = (replace(case, weight=weights.get(case.case, case.weight)) for case in outcome.cases)
        return replace(outcome, cases=tuple(cases))

    return {student: weighed(outcome) for student, outcome in outcomes.items()}


def keep(journal: Journal, outcomes: Mapping[str, Outcome]) -> None:
    """Write down what differs from the journal; of several records of a student the last counts."""
    for student, outcome in outcomes.items():
        if outcome != journal.outcomes.get(student):
            journal.add(outcome)
