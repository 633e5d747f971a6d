"""Item analysis: for every question and case, how many passed and how well it tells strong from weak work."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autograder.grading.journal import Outcome
from autograder.judge.results import CaseResult, Report
from autograder.judge.verdicts import Verdict

BINS = 10


@dataclass(frozen=True)
class Item:
    """One question or case: the share of its points that the class earned, and how that goes with the rest."""

    name: str
    text: str
    points: float
    share: float  # of the points earned, over all who were asked
    discrimination: float | None  # correlation with the total of everything else; None where it is not defined
    seconds: float
    verdicts: dict[str, int]
    public: bool = False


@dataclass(frozen=True)
class Misconception:
    """A known mistake and those who made it."""

    question: str
    label: str
    hint: str
    students: tuple[str, ...]
    cost: float = 0.0  # points that the class lost in the question by it; two mistakes of one answer share what it lost


@dataclass(frozen=True)
class Spread:
    """The distribution of the totals."""

    count: int
    mean: float
    median: float
    deviation: float
    bins: tuple[int, ...]  # equal steps from nothing to all points


def spread(totals: Sequence[float], points: float) -> Spread:
    """The distribution of these totals out of so many points."""
    values = np.asarray(totals, dtype=float)
    if not len(values):
        return Spread(0, 0.0, 0.0, 0.0, (0,) * BINS)
    bins, _ = np.histogram(values.clip(0, points), bins=BINS, range=(0, points))  # a bonus may lead beyond all points
    return Spread(
        len(values), float(values.mean()), float(np.median(values)), float(values.std()), tuple(int(n) for n in bins)
    )


def question_items(reports: Mapping[str, Report]) -> list[Item]:
    """Every question that was graded, in the homework's order."""
    students = list(reports)
    scores = {s: {r.question: r.score for r in reports[s].questions if r.graded} for s in students}
    items = []
    for number, asked in enumerate(reports[students[0]].questions if students else []):
        results = [reports[s].questions[number] for s in students if asked.question in scores[s]]
        if not results:
            continue
        earned = [scores[s].get(asked.question, 0.0) for s in students]
        rest = [sum(scores[s].values()) - scores[s].get(asked.question, 0.0) for s in students]
        items.append(
            Item(
                name=asked.question,
                text="",
                points=asked.points,
                share=float(np.mean(earned)) / asked.points,
                discrimination=_correlation(earned, rest),
                seconds=float(np.mean([sum(case.seconds for case in result.cases) for result in results])),
                verdicts=_verdicts([case for result in results for case in result.cases]),
            )
        )
    return items


def case_items(outcomes: Mapping[str, Outcome], reports: Mapping[str, Report]) -> list[Item]:
    """Every case that was run, as the suite orders them."""
    totals = {student: report.total for student, report in reports.items()}
    found: dict[str, list[tuple[str, CaseResult]]] = defaultdict(list)
    for student, outcome in outcomes.items():
        for case in outcome.cases:
            found[case.case].append((student, case))
    items = []
    for name, ran in found.items():
        counted = [(student, case) for student, case in ran if case.verdict is not Verdict.INFRASTRUCTURE]
        passed = [float(case.verdict is Verdict.PASSED) for _, case in counted]
        first = ran[0][1]
        items.append(
            Item(
                name=name,
                text=first.sentence,
                points=first.weight,
                share=float(np.mean(passed)) if passed else 0.0,
                discrimination=_correlation(passed, [totals[student] for student, _ in counted]),
                seconds=float(np.mean([case.seconds for _, case in ran])),
                verdicts=_verdicts([case for _, case in ran]),
                public=first.public,
            )
        )
    return items


def misconceptions(outcomes: Mapping[str, Outcome], reports: Mapping[str, Report]) -> list[Misconception]:
    """The known mistakes of the class with what they cost it, the most frequent first."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    costs: dict[tuple[str, str, str], float] = defaultdict(float)
    for student in sorted(outcomes):
        for question, diagnosis in outcomes[student].diagnoses.items():
            lost = sum(r.points - r.score for r in reports[student].questions if r.question == question)
            for mistake in diagnosis.all:
                found[question, mistake.label, mistake.hint].append(student)
                costs[question, mistake.label, mistake.hint] += lost / len(diagnosis.all)
    ranked = sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [Misconception(*key, tuple(students), round(costs[key], 2)) for key, students in ranked]


def _correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    if len(x) < 3 or np.std(x) < 1e-9 or np.std(y) < 1e-9:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _verdicts(cases: Sequence[CaseResult]) -> dict[str, int]:
    return dict(Counter(str(case.verdict) for case in cases).most_common())
