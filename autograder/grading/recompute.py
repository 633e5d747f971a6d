"""`autograder recompute`: scores from the facts in the journal and the points and weights as they stand now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.assumptions import Assumption
from autograder.digests import question_digest
from autograder.grading.by_hand import Desk, SheetDesk
from autograder.grading.changes import Change, read_grades, score_changes, told, written_grades
from autograder.grading.decided import Decided, decided
from autograder.grading.journal import JOURNAL, Journal, Outcome, homework_of
from autograder.grading.outputs import all_assumed, grades_csv, reports_of, write_outputs
from autograder.grading.rules import Rules
from autograder.grading.tables import named
from autograder.homework import Homework, read_homework


@dataclass(frozen=True)
class Recomputed:
    """What came out, or would."""

    homework: str
    students: int
    changes: list[Change]
    outdated: list[str]  # students some of whose facts come from another suite than today's
    applied: bool
    feedback: str  # how much pages tell of hidden cases
    remarks: list[str]  # what is to be known about these scores: old ones, unknown times
    assumptions: list[Assumption]


def recompute(
    out: Path,
    dry_run: bool = False,
    tell: Callable[[str], None] = print,
    desk: Desk | None = None,
    said: Rules | None = None,
    change: Callable[[Decided], Decided] = lambda people: people,
) -> Recomputed:
    """Tell whose score changes, then write grades and pages anew; nothing of a student's is run.

    `change` is what a command adds to that which people decided so far.
    """
    homework = read_homework(homework_of(out))
    desk = desk or SheetDesk(out)
    people = change(decided(out, homework, desk, said))
    with Journal(out / JOURNAL, homework.name) as journal:
        outcomes = reweighed(journal.outcomes, homework.name)
        old = outdated(homework, outcomes)
        people = replace(people, outdated=old)
        everybody = journal.everybody | outcomes
        changes = changes_of(homework, everybody, people, out)
        tell(told(changes))
        remarks = [line for line in (told_outdated(homework, outcomes), *told_late(outcomes, people)) if line]
        assumed = all_assumed(everybody, people, journal.of_class.assumptions)
        if not dry_run:
            keep(journal, outcomes)
            sheet = desk.settle(homework, journal.outcomes, set(), people.waived)
            people, of_class = replace(people, sheet=sheet), journal.of_class.assumptions
            assumed = write_outputs(homework, journal.everybody, out, people, of_class=of_class)
    found = list(old), not dry_run, people.level, remarks, assumed
    return Recomputed(homework.name, len(outcomes), changes, *found)


def changes_of(homework: Homework, outcomes: Mapping[str, Outcome], people: Decided, out: Path) -> list[Change]:
    """Whose score would differ from the grades as they were last written."""
    new = grades_csv(homework, outcomes, reports_of(homework, outcomes, people))
    return score_changes(written_grades(out), read_grades(new))


def told_late(outcomes: Mapping[str, Outcome], people: Decided) -> list[str]:
    """What lateness cost."""
    found = {s: people.deadline.of(s, o.handed, o.marked) for s, o in sorted(outcomes.items())}
    costly = [student for student, one in found.items() if one.seconds and one.policy.percent(one.seconds)]
    return [f"Late, with points taken off: {named(costly)}."] if costly else []


def outdated(homework: Homework, outcomes: Mapping[str, Outcome]) -> dict[str, list[str]]:
    """The questions whose cases were found with another suite than today's, by student; who has none is left out."""
    digests = {question.id: question_digest(homework, question.id) for question in homework.questions}
    found = {}
    for student, outcome in outcomes.items():
        seen = {case.question for case in outcome.cases}
        old = [q for q, digest in digests.items() if q in seen and not outcome.suites.get(q, "").startswith(digest)]
        if old:
            found[student] = old
    return found


def told_outdated(homework: Homework, outcomes: Mapping[str, Outcome]) -> str:
    """Whose scores rest on an older suite, and in which questions; empty where nobody's do."""
    found = outdated(homework, outcomes)
    if not found:
        return ""
    questions = [question.id for question in homework.questions if any(question.id in old for old in found.values())]
    return (
        f"{len(found)} of {len(outcomes)} submissions were graded with another suite than today's "
        f"({', '.join(questions)}). Their cases count as they came out then; `autograder grade` runs them anew."
    )


def reweighed(outcomes: Mapping[str, Outcome], homework: str) -> dict[str, Outcome]:
    """The outcomes with the weights that the suite has now; a case that it no longer has keeps its own."""
    from autograder.judge.tools import tools  # with torch, which whoever only reads results does not need

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
