"""The suite's own exam: the reference earns all, the stub nothing, mistakes lose and are named, variants keep all.

And an earlier answer that is wrong or missing costs the later ones nothing but their integration case.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

import nbformat
import torch

from autograder.box.limits import Limits
from autograder.builder.notebooks import student_cells
from autograder.homework import Homework, Question
from autograder.judge.exam import Exam
from autograder.judge.examine import examine
from autograder.judge.helped import sit_helped
from autograder.judge.local import sit_locally
from autograder.judge.results import CaseResult, QuestionResult
from autograder.judge.seat import Help, Seat, Sitting
from autograder.judge.tools import tools
from autograder.judge.verdicts import Verdict
from autograder.proved import COUNTS, Row, recall, remember
from autograder.submission import Submission, parse_submission, reference_submission

DEFAULT_SEED = 0  # what is proved with it is remembered


@dataclass(frozen=True)
class Job:
    """One thing to prove: that this answer to this question is treated as it should be."""

    homework: str
    question: str
    kind: str  # "reference", "stub", "mistake", "variant", or "cascade": right, on earlier answers that are not
    label: str = ""
    seed: int = 0
    draft: bool = False
    alone: bool = False  # the other questions of its homework are not looked at


@dataclass(frozen=True)
class Proof:
    """What became of a job: how many cases ran, and every way in which the suite fell short."""

    job: Job
    cases: int
    seconds: float
    misses: tuple[str, ...] = ()
    caught: bool = False
    named: bool = False
    public: bool = False  # a mistake that fails a public check
    fails: tuple[str, ...] = ()  # what it fails, with either of two seeds


@dataclass
class Table:
    """The proofs of one homework, and the table printed for it."""

    homework: Homework
    proofs: list[Proof] = field(default_factory=list)
    question: str | None = None  # the only one that was asked for
    remembered: dict[str, Row] = field(default_factory=dict)  # of the questions that were proved before

    @property
    def misses(self) -> list[str]:
        """Every shortcoming, one line each."""
        return [
            f"{p.job.question} {p.job.kind} {p.job.label}".rstrip() + f": {m}" for p in self.proofs for m in p.misses
        ]

    def lines(self) -> Iterator[str]:
        """The table, a line per question and one for the whole."""
        yield self.homework.name
        head = ("caught", "named", "public", "kept", "seconds")
        yield f"  {'question':10}{'points':>8}{'cases':>8}" + "".join(f"{name:>10}" for name in head)
        for row in self.rows():
            caught, named = f"{row.caught}/{row.mistakes}", f"{row.named}/{row.mistakes}"
            seconds = "-" if row.seconds is None else f"{row.seconds:.1f}"
            public = f"{row.public}/{row.mistakes}"
            numbers = f"{caught:>10}{named:>10}{public:>10}{f'{row.kept}/{row.variants}':>10}{seconds:>10}"
            yield f"  {row.question:10}{row.points:>8g}{row.cases:>8}{numbers}"

    def gaps(self) -> Iterator[str]:
        """The mistakes that pass all public checks, a line per question."""
        for question in self.homework.questions:
            if self.question in (None, question.id) and (unseen := self.row(question.id).unseen):
                yield f"{question.id}: public checks let pass {', '.join(unseen)}."

    def rows(self) -> Iterator[Row]:
        """The numbers of the table."""
        for question in self.homework.questions:
            if self.question in (None, question.id):
                yield self.row(question.id)
        if self.question is None:
            yield _sum([self.row(question.id) for question in self.homework.questions])

    def row(self, question: str) -> Row:
        """The numbers of one question, from its proofs or from memory."""
        proofs = [proof for proof in self.proofs if proof.job.question == question]
        return self.remembered.get(question) or _row(question, proofs, self.homework.question(question).points)


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
        unseen=tuple(proof.job.label for proof in mistakes if not proof.public),
        fails={proof.job.label: proof.fails for proof in mistakes},
    )


def _sum(rows: list[Row]) -> Row:
    counts = {name: sum(getattr(row, name) for row in rows) for name in ("points", *COUNTS)}
    seconds = [row.seconds for row in rows if row.seconds is not None]
    unseen = tuple(label for row in rows for label in row.unseen)
    return Row("all", **counts, seconds=sum(seconds) if seconds else None, unseen=unseen)


def verify(
    names: list[str],
    workers: int | None = None,
    seed: int = 0,
    question: str | None = None,
    anew: bool = False,
    draft: bool = False,
    tell: Callable[[str], None] = print,
) -> list[Table]:
    """Prove the suites of the homeworks, in parallel; raises `BadSource` where one cannot be read.

    Questions that are unchanged since they were proved are left out, unless all is to be proved `anew`. Of a `draft`
    what is there is proved, and not remembered. With `question` the other questions are not looked at.
    """
    tables = {name: Table(tools(name, draft, question)[0], question=question) for name in names}
    asked = Job("", question or "", "", seed=seed, draft=draft, alone=question is not None)
    jobs = [job for table in tables.values() for job in _jobs(table.homework, asked)]
    memory = seed == DEFAULT_SEED and not draft
    if memory and not anew:
        jobs = [
            job
            for name, table in tables.items()
            for job in _changed(table, [j for j in jobs if j.homework == name], tell)
        ]
    if not jobs:
        return list(tables.values())
    workers = workers or os.cpu_count() or 1
    for name in {job.homework: None for job in jobs}:
        tools(name, draft, question)[1].warm_up()
    left = Counter((job.homework, job.question) for job in jobs)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker) as pool:
        for proof in pool.map(prove, jobs):
            table, proved = tables[proof.job.homework], proof.job.question
            table.proofs.append(proof)
            left[table.homework.name, proved] -= 1
            if not left[table.homework.name, proved] and memory:
                missed = any(proof.misses for proof in table.proofs if proof.job.question == proved)
                if trouble := remember(table.homework, proved, None if missed else table.row(proved)):
                    tell(trouble)
    return list(tables.values())


def _changed(table: Table, jobs: list[Job], tell: Callable[[str], None]) -> list[Job]:
    """The jobs of the questions that are not known to be proved as they are; what is known goes to the table."""
    asked = list(dict.fromkeys(job.question for job in jobs))
    rows, trouble = recall(table.homework, asked)
    table.remembered = rows
    anew = [question for question in asked if question not in rows]
    told = f"{len(asked) - len(anew)} of {len(asked)} questions unchanged since they were proved; "
    told += f"proved now: {', '.join(anew)}." if anew else "--anew proves all."
    tell("\n".join([*([trouble] if trouble else []), f"{table.homework.name}: {told}"]))
    return [job for job in jobs if job.question in anew]


def prove(job: Job) -> Proof:
    """Run one job in this process."""
    homework, exam, diagnostician = tools(job.homework, job.draft, job.question if job.alone else None)
    question = homework.question(job.question)
    submission = _submission(homework, job)

    def open_sitting(_: Limits, help: Help | None) -> Sitting:
        return sit_locally(submission) if help is None else sit_helped(submission, homework, help, sit_locally)

    with Seat(open_sitting) as seat:
        (result,) = examine(
            exam, diagnostician, seat, [question], job.seed, help_allowed=job.kind == "cascade"
        )  # fmt: skip
        failed = [case.case for case in result.cases if case.verdict is not Verdict.PASSED]
        again = list(_failed_again(exam, seat, question, job.seed, failed)) if job.kind == "mistake" else []
    integration = {case.id for case in exam.of_question(question.id) if case.integration}
    probed = homework.public_file(question.id).is_file()
    misses = tuple(_misses(job, result, integration, probed))
    named = {result.diagnosis.label} if result.diagnosis else set()
    named |= {case.mistake for case in result.cases if case.mistake}
    return Proof(
        job,
        cases=len(result.cases),
        seconds=sum(case.seconds for case in result.cases),
        misses=misses,
        caught=result.score < result.points,
        named=job.label in named,
        public=any(case.public and case.verdict is not Verdict.PASSED for case in result.cases),
        fails=tuple(again),
    )


def _failed_again(exam: Exam, seat: Seat, question: Question, seed: int, failed: list[str]) -> Iterator[str]:
    """Those of the failed cases that fail with another seed too, by their names within the question."""
    for case in exam.of_question(question.id):
        if case.id in failed:
            if "rng" not in case.item.fixturenames:  # draws nothing
                yield case.id.removeprefix(f"{question.id}/")
                continue
            seat.use(question.limits | case.limits)
            if exam.sit(case, seat, seed + 1).verdict in (Verdict.FAILED, Verdict.ERROR):
                yield case.id.removeprefix(f"{question.id}/")
            else:
                seat.renew()


def _jobs(homework: Homework, asked: Job) -> Iterator[Job]:
    """Everything to prove of a homework, or of the one question that is asked for."""
    for question in homework.questions:
        if asked.alone and question.id != asked.question or not homework.has_checks(question.id):
            continue
        mistaken = all(homework.mistakes[part] for part in question.uses)  # a draft may have none of them yet
        for kind, labels in (
            ("reference", [""]),
            ("stub", [""]),
            ("mistake", [entry.label for entry in homework.mistakes[question.id]]),
            ("variant", [entry.label for entry in homework.variants[question.id]]),
            ("cascade", (["missing", "mistaken"] if mistaken else ["missing"]) if question.uses else []),
        ):
            for label in labels:
                yield replace(asked, homework=homework.name, question=question.id, kind=kind, label=label)


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


def _misses(job: Job, result: QuestionResult, integration: set[str], probed: bool = True) -> Iterator[str]:
    """Every way in which the suite treats this answer otherwise than it should; without probes none can be named."""
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
                yield f"makes the suite stumble: {_told(case)}"
        if result.score >= result.points:
            yield "keeps every point"
        named = {result.diagnosis.label} if result.diagnosis else {case.mistake for case in result.cases}
        if probed and job.label not in named:
            yield f"is not named (diagnosis: {', '.join(str(label) for label in named)})"


def _told(case: CaseResult) -> str:
    """What a case says; where the test itself raised something, the line of the suite and the exception."""
    if case.detail and case.verdict is Verdict.FAILED:
        return f"{case.case} itself fails, at {case.detail.strip().rpartition(chr(10))[2]}"
    return f"{case.case} says {case.verdict}: {case.message}"


def _start_worker() -> None:
    torch.set_num_threads(1)
