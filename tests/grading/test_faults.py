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
from autograder.judge.verdicts import StudentCrash
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
        channel = Mortal(self._fate)
        return type("Box", (), {"channel": channel, "close": staticmethod(channel.close)})


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
