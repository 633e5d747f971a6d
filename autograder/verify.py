"""The suite's own exam: the reference earns all, the stub nothing, mistakes lose and are named, variants keep all.

And an earlier answer that is wrong or missing costs the later ones nothing but their integration case.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import nbformat
import torch

from autograder.box.limits import Limits
from autograder.builder.notebooks import student_cells
from autograder.homework import Homework, read_homework
from autograder.judge.examine import examine
from autograder.judge.local import sit_locally
from autograder.judge.results import CaseResult, QuestionResult
from autograder.judge.seat import Help, Seat, Sitting
from autograder.judge.tools import tools
from autograder.judge.verdicts import Verdict
from autograder.submission import Submission, parse_submission, reference_submission, with_reference_parts


@dataclass(frozen=True)
class Job:
    """One thing to prove: that this answer to this question is treated as it should be."""

    homework: str
    question: str
    kind: str  # "reference", "stub", "mistake", "variant", or "cascade": right, on earlier answers that are not
    label: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Proof:
    """What became of a job: how many cases ran, and every way in which the suite fell short."""

    job: Job
    cases: int
    seconds: float
    misses: tuple[str, ...] = ()
    caught: bool = False
    named: bool = False


@dataclass(frozen=True)
class Row:
    """One line of the table: how a question's suite treats its mistakes and right variants."""

    question: str
    points: float
    cases: int
    mistakes: int
    caught: int
    named: int
    variants: int
    kept: int
    seconds: float


@dataclass
class Table:
    """The proofs of one homework, and the table printed for it."""

    homework: Homework
    proofs: list[Proof] = field(default_factory=list)

    @property
    def misses(self) -> list[str]:
        """Every shortcoming, one line each."""
        return [
            f"{p.job.question} {p.job.kind} {p.job.label}".rstrip() + f": {m}" for p in self.proofs for m in p.misses
        ]

    def lines(self) -> Iterator[str]:
        """The table, a line per question and one for the whole."""
        yield self.homework.name
        yield f"  {'question':10}{'points':>8}{'cases':>8}{'caught':>10}{'named':>10}{'kept':>10}{'seconds':>10}"
        for row in self.rows():
            caught, named = f"{row.caught}/{row.mistakes}", f"{row.named}/{row.mistakes}"
            numbers = f"{caught:>10}{named:>10}{f'{row.kept}/{row.variants}':>10}{row.seconds:>10.1f}"
            yield f"  {row.question:10}{row.points:>8g}{row.cases:>8}{numbers}"

    def rows(self) -> Iterator[Row]:
        """The numbers of the table."""
        for question in self.homework.questions:
            yield _row(question.id, [p for p in self.proofs if p.job.question == question.id], question.points)
        yield _row("all", self.proofs, sum(question.points for question in self.homework.questions))


def _row(name: str, proofs: list[Proof], points: float) -> Row:
    mistakes = [proof for proof in proofs if proof.job.kind == "mistake"]
    variants = [proof for proof in proofs if proof.job.kind == "variant"]
    return Row(
        question=name,
        points=points,
        cases=sum(proof.cases for proof in proofs if proof.job.kind == "reference"),
        mistakes=len(mistakes),
        caught=sum(proof.caught for proof in mistakes),
        named=sum(proof.named for proof in mistakes),
        variants=len(variants),
        kept=sum(not proof.misses for proof in variants),
        seconds=sum(proof.seconds for proof in proofs),
    )


def verify(names: list[str], workers: int | None = None, seed: int = 0, question: str | None = None) -> list[Table]:
    """Prove the suites of the homeworks, in parallel; raises `BadSource` where one cannot be read."""
    tables = {name: Table(read_homework(name)) for name in names}
    jobs = [job for table in tables.values() for job in _jobs(table.homework, seed) if question in (None, job.question)]
    workers = workers or os.cpu_count() or 1
    for name in names:
        tools(name)[1].warm_up()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker) as pool:
        for proof in pool.map(prove, jobs):
            tables[proof.job.homework].proofs.append(proof)
    return list(tables.values())


def prove(job: Job) -> Proof:
    """Run one job in this process."""
    homework, exam, diagnostician = tools(job.homework)
    question = homework.question(job.question)
    submission = _submission(homework, job)

    def open_sitting(_: Limits, help: Help | None) -> Sitting:
        return sit_locally(submission if help is None else with_reference_parts(submission, homework, *help))

    with Seat(open_sitting) as seat:
        (result,) = examine(
            exam,
            diagnostician,
            seat,
            [question],
            job.seed,
            to_the_end=job.kind != "mistake",
            help_allowed=job.kind == "cascade",
        )
    integration = {case.id for case in exam.of_question(question.id) if case.integration}
    misses = tuple(_misses(job, result, integration))
    named = {result.diagnosis.label} if result.diagnosis else set()
    named |= {case.mistake for case in result.cases if case.mistake}
    return Proof(
        job,
        cases=len(result.cases),
        seconds=sum(case.seconds for case in result.cases),
        misses=misses,
        caught=result.score < result.points,
        named=job.label in named,
    )


def _jobs(homework: Homework, seed: int) -> Iterator[Job]:
    for question in homework.questions:
        for kind, labels in (
            ("reference", [""]),
            ("stub", [""]),
            ("mistake", [entry.label for entry in homework.mistakes[question.id]]),
            ("variant", [entry.label for entry in homework.variants[question.id]]),
            ("cascade", ["missing", "mistaken"] if question.uses else []),
        ):
            for label in labels:
                yield Job(homework.name, question.id, kind, label, seed)


def _submission(homework: Homework, job: Job) -> Submission:
    if job.kind == "stub":
        notebook = nbformat.v4.new_notebook(cells=student_cells(homework, solved=False))
        return parse_submission(nbformat.writes(notebook).encode(), ".ipynb", homework)
    if job.kind == "cascade":
        return reference_submission(homework, dict(_earlier_parts(homework, job)))
    entries = {"mistake": homework.mistakes, "variant": homework.variants}.get(job.kind, {})
    paste = next((entry.source for entry in entries.get(job.question, []) if entry.label == job.label), "")
    return reference_submission(homework, {job.question: paste})


def _earlier_parts(homework: Homework, job: Job) -> Iterator[tuple[str, str]]:
    """What a cascade pastes over the questions that this one uses: their stubs, or a mistake each."""
    stubs = {cell.id: cell.source for cell in student_cells(homework, solved=False)}
    for part in homework.question(job.question).uses:
        yield part, stubs[part] if job.label == "missing" else homework.mistakes[part][0].source


def _misses(job: Job, result: QuestionResult, integration: set[str]) -> Iterator[str]:
    """Every way in which the suite treats this answer otherwise than it should."""
    if job.kind == "cascade":
        for case in result.cases:
            if case.case not in integration and case.verdict is not Verdict.PASSED:
                yield f"is right, but an earlier answer costs it a point: {_told(case)}"
            elif case.case in integration and job.label == "missing" and case.verdict is Verdict.PASSED:
                yield f"{case.case} passes without the student's own earlier parts: it integrates nothing"
    elif job.kind in ("reference", "variant"):
        for case in result.cases:
            if case.verdict is not Verdict.PASSED:
                yield f"is right, but {_told(case)}"
    elif job.kind == "stub":
        for case in result.cases:
            if case.verdict is not Verdict.NOT_ANSWERED:
                yield f"is untouched, but {_told(case)}"
    else:
        for case in result.cases:
            if case.verdict is Verdict.INFRASTRUCTURE or (case.detail and case.verdict is Verdict.FAILED):
                yield f"makes the suite stumble: {_told(case)}: {case.detail.strip().rpartition(chr(10))[2]}"
        if result.score >= result.points:
            yield "keeps every point"
        named = {result.diagnosis.label} if result.diagnosis else {case.mistake for case in result.cases}
        if job.label not in named:
            yield f"is not named (diagnosis: {', '.join(str(label) for label in named)})"


def _told(case: CaseResult) -> str:
    return f"{case.case} says {case.verdict}: {case.message}"


def _start_worker() -> None:
    torch.set_num_threads(1)
