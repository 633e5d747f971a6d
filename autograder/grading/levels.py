"""How much a feedback page tells of hidden cases. Public cases always show everything: students have them anyway.

What a hidden case expected, and any text out of a hidden call, would give its inputs away to whoever can still hand in.
Told are sentences of ours without values: how wrong numbers follow from the right ones
(`course_utils.checking.relations`), and what a test says word for word whatever it has met.
"""

from __future__ import annotations

from datetime import datetime

from autograder.grading.late import read_due
from autograder.judge.results import PARTS, CaseResult, QuestionResult
from autograder.judge.verdicts import Verdict
from course_utils.explain.sentences import whole

FULL, TEACHING, VERDICTS = "full", "teaching", "verdicts"
LEVELS = (FULL, TEACHING, VERDICTS)
OURS = {
    Verdict.PASSED: "",
    Verdict.FAILED: "this does not come out right",
    Verdict.ERROR: "your code raised an exception",
    Verdict.TIMEOUT: "your code took too long",
    Verdict.MEMORY: "your code needed too much memory",
    Verdict.CRASHED: "your code ended its process",
    Verdict.NOT_ANSWERED: "not answered yet",
    Verdict.INFRASTRUCTURE: "this could not be checked, for a fault of ours",
}


def level_by(wanted: str | None, due: str | datetime | None, now: datetime | None = None) -> str:
    """The level that is wanted; else by the date after which nobody hands in: everything then, no hidden value before.

    Without a date nobody knows, so nothing hidden is told.
    """
    end = read_due(due) if due and isinstance(due, str) else due or None
    if wanted:
        return wanted
    return FULL if end and (now or datetime.now().astimezone()) > end else TEACHING


def told(case: CaseResult, level: str, together: float = 1.0) -> tuple[str, str]:
    """The verdict and the message of a case, as a student may read them.

    `together` is what the cases earn that were tried again with the reference's earlier answers: while students can
    hand in, none of these is told apart from the others, public or not.
    """
    if case.again and level != FULL:
        verdict = Verdict.PASSED if together == 1 else Verdict.FAILED
        words = "passed with" if together == 1 else "this was tried again, with others, with"
        return str(verdict), f"{words} the course's own {', '.join(case.again)} in place of yours"
    if case.public or level == FULL:
        return str(case.verdict), case.message
    if level == VERDICTS:
        return str(Verdict.PASSED if case.verdict is Verdict.PASSED else Verdict.FAILED), ""
    return str(case.verdict), case.message if case.helped else OURS[case.verdict]  # helped: in the judge's own words


def taught(case: CaseResult, level: str) -> str:
    """The sentence without values that a student may read beside OURS of a hidden case."""
    hidden = not (case.public or case.again or case.helped or case.verdict is Verdict.PASSED)
    return whole(case.taught) if hidden and level == TEACHING else ""


def of_those_tried_again(result: QuestionResult) -> str | None:
    """What the cases earn together that were tried again; None where they earn all, or there are none."""
    tried = [case for case in result.cases if case.again]
    if not tried or result.together == 1:
        return None
    parts = round(PARTS * result.together)
    return (
        f"Tried again with the course's own {', '.join(tried[0].again)} in place of yours: {len(tried)} checks, which "
        f"count together and earn {parts} of {PARTS} parts of their points."
    )


def tells_mistake(cases: tuple[CaseResult, ...], level: str) -> bool:
    """Whether the known mistake is named: always, but for bare verdicts that students cannot get from public checks."""
    return level != VERDICTS or any(case.public and case.verdict is not Verdict.PASSED for case in cases)
