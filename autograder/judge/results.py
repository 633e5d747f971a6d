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

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return asdict(self) | {"verdict": str(self.verdict)}


@dataclass(frozen=True)
class Diagnosis:
    """A known mistake that fits an answer, with the hint that a student reads."""

    label: str
    hint: str


@dataclass(frozen=True)
class QuestionResult:
    """One question of one student: the cases and, where an answer is wrong, the mistake it shows."""

    question: str
    points: float
    cases: tuple[CaseResult, ...]
    diagnosis: Diagnosis | None = None

    @property
    def score(self) -> float:
        """The points earned; cases that could not run for our own fault are left out of the account."""
        counted = [case for case in self.cases if case.verdict is not Verdict.INFRASTRUCTURE]
        total = sum(case.weight for case in counted)
        earned = sum(case.weight for case in counted if case.verdict is Verdict.PASSED)
        return round(self.points * earned / total, 2) if total else 0.0

    @property
    def complete(self) -> bool:
        """Whether every point was earned."""
        return all(case.verdict is Verdict.PASSED for case in self.cases)

    @property
    def answered(self) -> bool:
        """False where every case found a stub or nothing at all."""
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
