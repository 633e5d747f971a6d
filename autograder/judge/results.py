"""Facts and scores: what happened in each case, and what that is worth. Scores are computed from facts, afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from autograder.homework import Homework
from autograder.judge.verdicts import Verdict


@dataclass(frozen=True)
class CaseResult:
    """The facts of one case, as they go into the journal."""

    case: str
    question: str
    sentence: str
    public: bool
    weight: float
    verdict: Verdict
    message: str
    mistake: str | None
    seed: int
    seconds: float
    detail: str = ""  # for staff: what the test itself stumbled over
    helped: tuple[str, ...] = ()  # earlier questions whose reference answers stood in for the student's

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return asdict(self) | {"verdict": str(self.verdict)}


@dataclass(frozen=True)
class Diagnosis:
    """A known mistake that fits an answer, with the hint that a student reads."""

    label: str
    hint: str


@dataclass(frozen=True)
class HandGrade:
    """What a person decided about one question; it wins over the judge."""

    score: float
    comment: str = ""


@dataclass(frozen=True)
class QuestionResult:
    """One question of one student: the cases and, where an answer is wrong, the mistake it shows."""

    question: str
    points: float
    cases: tuple[CaseResult, ...]
    diagnosis: Diagnosis | None = None
    hand: HandGrade | None = None
    text: str | None = None  # the answer to a free-text question, which only a person grades

    @property
    def graded(self) -> bool:
        """Whether anybody has graded it, the judge or a person."""
        return bool(self.cases) or self.hand is not None

    @property
    def score(self) -> float:
        """The points that a person gave, else what the judge found."""
        return self.judged if self.hand is None else self.hand.score

    @property
    def judged(self) -> float:
        """The points that the cases earn; those that could not run for our own fault are left out of the account."""
        counted = [case for case in self.cases if case.verdict is not Verdict.INFRASTRUCTURE]
        total = sum(case.weight for case in counted)
        earned = sum(case.weight for case in counted if case.verdict is Verdict.PASSED)
        return round(self.points * earned / total, 2) if total else 0.0

    @property
    def complete(self) -> bool:
        """Whether every point was earned."""
        if self.hand is not None or self.text is not None:
            return self.score >= self.points
        return all(case.verdict is Verdict.PASSED for case in self.cases)

    @property
    def answered(self) -> bool:
        """False where every case found a stub or nothing at all, or where no text is written."""
        if self.text is not None:
            return bool(self.text)
        return any(case.verdict is not Verdict.NOT_ANSWERED for case in self.cases)


@dataclass(frozen=True)
class Report:
    """Everything the judge found out about one submission."""

    homework: str
    questions: tuple[QuestionResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The sum of the questions' scores."""
        return round(sum(question.score for question in self.questions), 2)

    def question(self, question_id: str) -> QuestionResult:
        """The result of one question."""
        return next(result for result in self.questions if result.question == question_id)


def by_question(homework: Homework, cases: Iterable[CaseResult]) -> dict[str, tuple[CaseResult, ...]]:
    """Case results grouped by question, in the homework's order."""
    results = list(cases)
    return {q.id: tuple(case for case in results if case.question == q.id) for q in homework.questions}
