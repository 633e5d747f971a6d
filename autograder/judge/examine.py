"""Examine one submission: every case of every question, a fresh box where one was lost, and a diagnosis at the end."""

from __future__ import annotations

from collections.abc import Iterable

from autograder.homework import Question
from autograder.judge.diagnosis import Diagnostician
from autograder.judge.exam import Case, Exam, Ruling
from autograder.judge.results import CaseResult, Diagnosis, QuestionResult
from autograder.judge.seat import Seat
from autograder.judge.verdicts import Infrastructure, StudentFault, Verdict
from course_utils.checking import NotAnswered

LOST = {
    Verdict.TIMEOUT,
    Verdict.MEMORY,
    Verdict.CRASHED,
    Verdict.INFRASTRUCTURE,
}  # the box is gone or not to be trusted
MAX_LOSSES = 2  # boxes one question may lose before its other cases get the same verdict unrun
TRIES = 3  # of a case that our own fault kept from running


def examine(
    exam: Exam,
    diagnostician: Diagnostician,
    seat: Seat,
    questions: Iterable[Question] | None = None,
    seed: int = 0,
    to_the_end: bool = True,
    public_only: bool = False,
) -> list[QuestionResult]:
    """The results of the questions; unless `to_the_end`, a question's cases after the first that fails are left out."""
    results = []
    for question in exam.homework.questions if questions is None else questions:
        chosen = [case for case in exam.of_question(question.id) if case.public or not public_only]
        seat.use(question.limits)
        _ready(seat)
        cases = _sit_all(exam, chosen, seat, seed, to_the_end)
        wrong = any(case.verdict in (Verdict.FAILED, Verdict.ERROR) for case in cases)
        named = [case.mistake for case in cases if case.mistake]
        diagnosis = _diagnose(diagnostician, question.id, seat, named) if wrong else None
        if wrong:
            seat.renew()  # who knows what a wrong answer has left behind
        results.append(QuestionResult(question.id, question.points, tuple(cases), diagnosis))
    return results


def _ready(seat: Seat) -> None:
    """A box that the last question left spoilt is not this question's doing: it gets a fresh one."""
    try:
        seat.student().ping()
    except (NotAnswered, StudentFault):
        seat.renew()
    except Infrastructure:
        pass  # the first case meets it too, and is tried again


def _sit_all(exam: Exam, cases: list[Case], seat: Seat, seed: int, to_the_end: bool) -> list[CaseResult]:
    results: list[CaseResult] = []
    lost: list[CaseResult] = []
    for case in cases:
        if seat.out_of_time:
            ruling = Ruling(Verdict.TIMEOUT, "not run: your notebook has used up the time for one submission")
            result = exam.record(case, seed, ruling)
        elif len(lost) < MAX_LOSSES:
            result = _sit(exam, case, seat, seed)
            lost += [result] if result.verdict in LOST else []
        else:
            ruling = Ruling(lost[-1].verdict, "not run: earlier cases of this question lost the box")
            result = exam.record(case, seed, ruling)
        results.append(result)
        if not to_the_end and result.verdict is not Verdict.PASSED:
            break
    return results


def _sit(exam: Exam, case: Case, seat: Seat, seed: int) -> CaseResult:
    for _ in range(TRIES):
        result = exam.sit(case, seat, seed)
        if result.verdict in LOST:
            seat.renew()
        if result.verdict is not Verdict.INFRASTRUCTURE:
            break
    return result


def _diagnose(diagnostician: Diagnostician, question: str, seat: Seat, named: list[str]) -> Diagnosis | None:
    """The mistake that fits; none where the box is lost while looking."""
    try:
        return diagnostician.diagnose(question, seat.student(), named)
    except (NotAnswered, StudentFault, Infrastructure):
        seat.renew()
        return None
