"""Facts and scores: what happened in each case, and what that is worth. Scores are computed from facts, afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
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
    again: tuple[str, ...] = ()  # the same where it was tried again, whatever came out: such cases count together
    taught: str = ""  # as much of the message as is ours alone and holds no value: told at every level but verdicts

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return asdict(self) | {"verdict": str(self.verdict)}


@dataclass(frozen=True)
class Diagnosis:
    """A known mistake that fits an answer, with the hint that a student reads.

    `exact`: the outputs are the mistake's wherever those differ from the right ones. `fails`: the cases that the
    answer fails and that the mistake itself fails too. `second`: another one, where two together explain the answer.
    """

    label: str
    hint: str
    exact: bool = False
    fails: tuple[str, ...] = ()
    second: Diagnosis | None = None

    @property
    def all(self) -> tuple[Diagnosis, ...]:
        """This mistake, and the second one if there is any."""
        return (self,) if self.second is None else (self, self.second)


@dataclass(frozen=True)
class HandGrade:
    """What a person said about one question; a score wins over the judge, a comment alone leaves it the judge's."""

    score: float | None
    comment: str = ""


@dataclass(frozen=True)
class Waiver:
    """What people decided about a case that turned out bad: full marks on it for all, or left out where it failed."""

    how: str
    why: str


FULL, DROP = "full", "drop"  # how a case is waived
PARTS = 3  # cases that were tried again earn none of their points, one part, two, or all


@dataclass(frozen=True)
class QuestionResult:
    """One question of one student: the cases and, where an answer is wrong, the mistake it shows."""

    question: str
    points: float
    cases: tuple[CaseResult, ...]
    diagnosis: Diagnosis | None = None
    hand: HandGrade | None = None
    text: str | None = None  # the answer to a free-text question, which only a person grades
    waived: Mapping[str, Waiver] = field(default_factory=dict)  # by case
    bonus: bool = False  # earns points beyond those of the homework
    outdated: bool = False  # the cases are of an earlier suite or file, and count until it is graded again
    price: float | None = None  # what the mistakes that were named cost, as a share of the points; None: not counted

    @property
    def graded(self) -> bool:
        """Whether anybody has graded it, the judge or a person."""
        return bool(self.cases) or self.by_person

    @property
    def by_person(self) -> bool:
        """Whether a person gave the score."""
        return self.hand is not None and self.hand.score is not None

    @property
    def comment(self) -> str:
        """What a person wrote about it."""
        return self.hand.comment if self.hand else ""

    @property
    def score(self) -> float:
        """The points that a person gave, else what the judge found."""
        return self.judged if self.hand is None or self.hand.score is None else self.hand.score

    @property
    def judged(self) -> float:
        """The points that the answer earns: those of its cases, or all but the price of what explains each failed one.

        The better of the two. Wrong in one way costs once, however many cases look at it.
        """
        if self.price is None or not self.explained:
            return self.by_cases
        return max(self.by_cases, round(self.points * max(0.0, 1 - self.price), 2))

    @property
    def by_cases(self) -> float:
        """The points that the cases earn.

        Those that could not run for our own fault are left out of the account, and so are waived ones that failed.
        """
        counted = [case for case in self.cases if self._counts(case)]
        total = sum(case.weight for case in counted)
        earned = sum(case.weight * self.credit(case) for case in counted)
        return round(self.points * earned / total, 2) if total else 0.0

    def credit(self, case: CaseResult) -> float:
        """The share of its weight that a case earns: all or nothing, or what those tried again earn together."""
        return self.together if case.again else float(self._passed(case))

    @property
    def together(self) -> float:
        """The share that the cases earn which were tried again with the reference's earlier answers.

        All where all pass, else the nearest part below. One verdict for each would be as many bits to whoever lets
        them depend on what the reference says; so there are two in a question.
        """
        tried = [case for case in self.cases if case.again and self._counts(case)]
        weight = sum(case.weight for case in tried)
        passed = sum(case.weight for case in tried if self._passed(case))
        if not weight or all(map(self._passed, tried)):
            return 1.0
        return min(round(PARTS * passed / weight), PARTS - 1) / PARTS

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases that cost points."""
        return tuple(case for case in self.cases if self._counts(case) and not self._passed(case))

    @property
    def explained(self) -> bool:
        """Whether the mistakes that were named exactly explain every failed case: they fail the same ones themselves.

        A case that did not come to an end is explained by nothing, and neither is one that our own fault kept away.
        """
        if self.diagnosis is None or not self.failed:
            return False
        known = {name for mistake in self.diagnosis.all if mistake.exact for name in mistake.fails}
        ended = all(case.verdict in (Verdict.FAILED, Verdict.ERROR) for case in self.failed)
        ran = all(case.verdict is not Verdict.INFRASTRUCTURE for case in self.cases)
        exact = all(mistake.exact for mistake in self.diagnosis.all)
        return exact and ended and ran and all(case.case in known for case in self.failed)

    @property
    def costs_once(self) -> bool:
        """Whether the price of the mistakes decides the score, and not the number of failed cases."""
        return self.price is not None and self.explained and self.judged > self.by_cases

    @property
    def complete(self) -> bool:
        """Whether every point was earned."""
        if self.by_person or self.text is not None:
            return self.score >= self.points
        kept = [case for case in self.cases if not self._dropped(case)]
        return all(map(self._passed, kept)) and bool(kept or not self.cases)

    def _passed(self, case: CaseResult) -> bool:
        waiver = self.waived.get(case.case)
        return case.verdict is Verdict.PASSED or waiver is not None and waiver.how == FULL

    def _dropped(self, case: CaseResult) -> bool:
        waiver = self.waived.get(case.case)
        return case.verdict is not Verdict.PASSED and waiver is not None and waiver.how == DROP

    def _counts(self, case: CaseResult) -> bool:
        return self._passed(case) or not (case.verdict is Verdict.INFRASTRUCTURE or self._dropped(case))

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
    comment: str = ""  # a person's, on the whole page
    handed: str = ""  # when it was handed in, where that is known
    late: str = ""  # whether it was late, and by how much, in words
    penalty: float = 0.0  # points taken off for that

    @property
    def total(self) -> float:
        """The sum of the questions' scores."""
        return round(sum(question.score for question in self.questions), 2)

    @property
    def final(self) -> float:
        """What counts in the end: the total, without what lateness costs."""
        return round(self.total - self.penalty, 2)

    def question(self, question_id: str) -> QuestionResult:
        """The result of one question."""
        return next(result for result in self.questions if result.question == question_id)


def by_question(homework: Homework, cases: Iterable[CaseResult]) -> dict[str, tuple[CaseResult, ...]]:
    """Case results grouped by question, in the homework's order."""
    results = list(cases)
    return {q.id: tuple(case for case in results if case.question == q.id) for q in homework.questions}
