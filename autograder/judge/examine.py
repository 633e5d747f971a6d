"""Examine one submission: every case of every question, a fresh box where one was lost, and a diagnosis at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from autograder.homework import Question
from autograder.judge.diagnosis import Diagnostician
from autograder.judge.exam import Case, Exam, Ruling
from autograder.judge.results import CaseResult, Diagnosis, QuestionResult
from autograder.judge.seat import Help, Seat
from autograder.judge.verdicts import Infrastructure, StudentFault, Verdict
from course_utils.checking.compare import NotAnswered

LOST = {
    Verdict.TIMEOUT,
    Verdict.MEMORY,
    Verdict.CRASHED,
    Verdict.INFRASTRUCTURE,
}  # the box is gone or not to be trusted
MAX_LOSSES = 2  # boxes that cases may lose before others that need the same functions get the same verdict unrun
MAX_LOST = 6  # boxes that one question may lose
TRIES = 3  # of a case that our own fault kept from running
SPOKEN = {Verdict.FAILED, Verdict.ERROR, Verdict.NOT_ANSWERED}  # the message can have words of the student's code


def examine(
    exam: Exam,
    diagnostician: Diagnostician,
    seat: Seat,
    questions: Iterable[Question] | None = None,
    seed: int = 0,
    public_only: bool = False,
    help_allowed: bool = True,
    right: Collection[str] = (),
) -> list[QuestionResult]:
    """The results of the questions.

    Where earlier answers may be to blame for what fails, the cases are tried again with the reference's in their place;
    those in `right` are known not to be.
    """
    results: list[QuestionResult] = []
    for question in exam.homework.questions if questions is None else questions:
        chosen = [case for case in exam.of_question(question.id) if case.public or not public_only]
        seat.use(question.limits)
        _ready(seat)
        cases = _sit_all(exam, question, chosen, seat, seed)
        if help_allowed and (parts := _suspects(question, results, right, cases)):
            cases = _sit_again(exam, cases, seat, seed, question, parts)
        wrong = any(case.verdict in (Verdict.FAILED, Verdict.ERROR) for case in cases)
        named = [case.mistake for case in cases if case.mistake]
        failed = _failed(cases)
        seat.use(question.limits)  # the student's own parts, after a second try with the reference's
        diagnosis = None
        if wrong and not seat.out_of_time:
            diagnosis = _diagnose(diagnostician, question.id, seat, named, failed)
        if wrong:
            seat.renew()  # who knows what a wrong answer has left behind
        results.append(QuestionResult(question.id, question.points, tuple(cases), diagnosis))
    return results


def _failed(cases: list[CaseResult]) -> list[str]:
    """The cases that failed; of those that were tried again all or none, so that no name tells which."""
    again = any(case.again and case.verdict is not Verdict.PASSED for case in cases)
    return [case.case for case in cases if (again if case.again else case.verdict is not Verdict.PASSED)]


def _suspects(
    question: Question, results: list[QuestionResult], known: Collection[str], cases: list[CaseResult]
) -> tuple[str, ...]:
    """The earlier questions that this one uses and that are not known to be right; all where it took too much."""
    too_much = any(case.verdict in (Verdict.TIMEOUT, Verdict.MEMORY) for case in cases)  # a right answer can be slow
    right = {*known, *(result.question for result in results if result.complete)}
    return tuple(part for part in question.uses if too_much or part not in right)


def _sit_again(
    exam: Exam, first: list[CaseResult], seat: Seat, seed: int, question: Question, parts: tuple[str, ...]
) -> list[CaseResult]:
    """Try what failed with the reference's earlier parts, which are in another box.

    Nothing but pass or fail comes out, and that counts together for all that are tried again: the student's code could
    let each depend on what it asks of the reference.
    """
    cases = {case.id: case for case in exam.of_question(question.id) if not case.integration}
    names = ", ".join(parts)
    tried = {
        before.case
        for before in first
        if before.verdict not in (Verdict.PASSED, Verdict.INFRASTRUCTURE)
        and before.case in cases
        and not (before.verdict is Verdict.NOT_ANSWERED and _is_own(before.detail, question))
    }
    results = [replace(before, again=parts) if before.case in tried else before for before in first]
    losses = 0
    for i, before in enumerate(results):
        if before.case not in tried:
            continue
        seat.use(question.limits | cases[before.case].limits, Help(question.id, parts))
        if losses >= MAX_LOSSES or seat.out_of_time:
            break
        again = _sit(exam, cases[before.case], seat, seed)
        losses += again.verdict in LOST
        if again.verdict is Verdict.PASSED:
            told = f"passed with the course's own {names} in place of yours"
            results[i] = replace(again, message=told, helped=parts, again=parts)
        elif before.verdict is Verdict.NOT_ANSWERED and again.verdict is not Verdict.NOT_ANSWERED:
            told = f"this fails, also with the course's own {names} in place of yours"
            verdict = again.verdict if again.verdict is Verdict.INFRASTRUCTURE else Verdict.FAILED
            results[i] = replace(again, verdict=verdict, message=told, mistake=None, detail="", helped=parts,
                                 again=parts)  # fmt: skip
        elif again.verdict is Verdict.NOT_ANSWERED:
            break  # the question itself is not answered
    return results


def _is_own(missing: str, question: Question) -> bool:
    """Whether what is not answered is this question itself, and no earlier one."""
    return missing.startswith(f"{question.id}:") or any(f"`{name}`" in missing for name in question.names)


def _ready(seat: Seat) -> None:
    """A box that the last question left spoilt is not this question's doing: it gets a fresh one."""
    try:
        seat.student().ping()
    except (NotAnswered, StudentFault):
        seat.renew()
    except Infrastructure:
        pass  # the first case meets it too, and is tried again


def _sit_all(exam: Exam, question: Question, cases: list[Case], seat: Seat, seed: int) -> list[CaseResult]:
    results: list[CaseResult] = []
    lost: list[tuple[Case, CaseResult]] = []
    for case in cases:
        alike = [result for other, result in lost if other.needs <= case.needs]
        if seat.out_of_time:
            ruling = Ruling(Verdict.TIMEOUT, "not run: your notebook has used up the time for one submission")
            result = exam.record(case, seed, ruling)
        elif len(alike) < MAX_LOSSES and len(lost) < MAX_LOST:
            seat.use(question.limits | case.limits)
            result = _sit(exam, case, seat, seed)
            lost += [(case, result)] if result.verdict in LOST else []
        else:
            ruling = Ruling(lost[-1][1].verdict, "not run: earlier cases of this question lost the box")
            result = exam.record(case, seed, ruling)
        results.append(result)
    return results


def _sit(exam: Exam, case: Case, seat: Seat, seed: int) -> CaseResult:
    """One case. What a public case says is shown: it is said in a box that has met no hidden input."""
    for _ in range(TRIES):
        result = exam.sit(case, seat, seed)
        if case.public and seat.seen_hidden and result.verdict in SPOKEN:
            seat.renew()
            result = exam.sit(case, seat, seed)
        if result.verdict in LOST:
            seat.renew()
        elif not case.public:
            seat.seen_hidden = True
        if result.verdict is not Verdict.INFRASTRUCTURE:
            break
    return result


def _diagnose(
    diagnostician: Diagnostician, question: str, seat: Seat, named: list[str], failed: list[str]
) -> Diagnosis | None:
    """The mistake that fits; none where the box is lost while looking."""
    try:
        return diagnostician.diagnose(question, seat.student(), named, failed)
    except (NotAnswered, StudentFault, Infrastructure):
        seat.renew()
        return None
