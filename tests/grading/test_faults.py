"""A box that dies at any request costs the question at hand and no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.box.channel import LoopbackChannel
from autograder.box.limits import Limits
from autograder.grading.task import Candidate
from autograder.homework import read_homework
from autograder.judge.diagnosis import Diagnostician
from autograder.judge.exam import Exam
from autograder.judge.examine import examine
from autograder.judge.local import reference_names
from autograder.judge.results import QuestionResult
from autograder.judge.seat import Seat
from autograder.judge.verdicts import StudentCrash, StudentTimeout, Verdict
from autograder.submission import reference_submission


@dataclass
class Fate:
    """Counts the requests to all boxes, and names the one that kills."""

    dies_at: int
    requests: int = 0


class Mortal(LoopbackChannel):
    """A box's channel that dies at one request, and stays dead."""

    def __init__(self, fate: Fate) -> None:
        super().__init__()
        self._fate, self._dead = fate, False

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        self._fate.requests += 1
        self._dead = self._dead or self._fate.requests == self._fate.dies_at
        if self._dead:
            raise StudentCrash("The process that ran your code died.")
        return super().request(message, wall=wall)


class Boxes:
    """As much of a BoxFactory as a candidate needs."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate

    def open(self, limits: Limits) -> Any:
        return _box(Mortal(self._fate))


def _box(channel: LoopbackChannel) -> Any:
    return type("Box", (), {"channel": channel, "close": staticmethod(channel.close), "waited": staticmethod(float)})


def test_a_box_that_dies_at_any_request_costs_one_question_at_most(tiny: Path) -> None:
    homework = read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")
    diagnostician, submission = Diagnostician(homework), reference_submission(homework)

    def sit(exam: Exam, fate: Fate) -> list[QuestionResult]:
        candidate = Candidate(submission, Boxes(fate))  # type: ignore[arg-type]
        with Seat(lambda limits, _: candidate.open(limits)) as seat:
            return examine(exam, diagnostician, seat)

    with Exam(homework, lambda: reference_names(homework)) as exam:
        undisturbed = Fate(dies_at=0)
        assert all(result.complete for result in sit(exam, undisturbed))
        assert undisturbed.requests > 5
        for moment in range(1, undisturbed.requests + 1):
            results = sit(exam, Fate(dies_at=moment))
            assert sum(not result.complete for result in results) <= 1, f"died at request {moment}: {results}"


class Deadly(LoopbackChannel):
    """A box's channel that dies when one function is called, as a loop without an end would have it."""

    def __init__(self, function: str) -> None:
        super().__init__()
        self._function, self._dead = function, False

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        self._dead = self._dead or getattr(message.get("target"), "name", "") == self._function
        if self._dead:
            raise StudentTimeout("no answer")
        return super().request(message, wall=wall)


def test_a_function_that_never_ends_costs_only_the_cases_that_need_it() -> None:
    homework = read_homework("hw1_attention")
    (question,) = [question for question in homework.questions if question.id == "q1_8"]
    lost = question.names[0]
    boxes = type("Boxes", (), {"open": staticmethod(lambda limits: _box(Deadly(lost)))})
    candidate = Candidate(reference_submission(homework), boxes)  # type: ignore[arg-type]
    with (
        Exam(homework, lambda: reference_names(homework), question.id) as exam,
        Seat(lambda limits, _: candidate.open(limits)) as seat,
    ):
        (result,) = examine(exam, Diagnostician(homework), seat, [question], help_allowed=False)
        needs = {case.id: case.needs for case in exam.cases}
    for case in result.cases:
        expected = Verdict.TIMEOUT if lost in needs[case.case] else Verdict.PASSED
        assert case.verdict is expected, (case.case, case.message)
    assert sum(case.message.startswith("not run") for case in result.cases) > 0
