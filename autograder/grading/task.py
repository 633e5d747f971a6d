"""Grade one submission: what a worker does, whether it is a process here or on a cluster."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property

import torch

from autograder.assumptions import KINDS, Assumption
from autograder.box.limits import Limits
from autograder.box.sandbox import BoxFactory
from autograder.digests import question_digest
from autograder.failing import is_unproved
from autograder.grading.collect import Handin
from autograder.grading.journal import Outcome
from autograder.homework import Homework
from autograder.judge.candidate import Candidate
from autograder.judge.examine import examine
from autograder.judge.helped import sit_helped
from autograder.judge.results import QuestionResult
from autograder.judge.seat import Help, Seat, Sitting
from autograder.judge.tools import tools
from autograder.judge.verdicts import Infrastructure, StudentTimeout, Verdict
from autograder.places import THE_COURSE
from autograder.submission import BadSubmission, parse_submission

PROCESSOR = 300.0  # seconds of processor time that the judge itself works on one submission; ten is usual
AGAIN = 30.0  # and so much later it is stopped once more


@dataclass(frozen=True)
class Task:
    """One submission to grade, complete: a worker needs nothing else."""

    homework: str
    student: str
    path: str
    content: bytes
    suffix: str
    suites: Mapping[str, str]  # the questions to grade, with the stamp that their facts get
    seed: int
    sandbox: str
    right: tuple[str, ...] = ()  # other questions that are known to be right
    public_only: bool = False
    checkpoints: tuple[tuple[str, bytes], ...] = ()  # files put beside the notebook in the box
    assumptions: tuple[Assumption, ...] = ()  # about the files

    @cached_property
    def digest(self) -> str:
        """A hash of what was handed in, by which a finished submission is known."""
        digest = hashlib.sha256(self.content)
        for name, data in self.checkpoints:
            digest.update(hashlib.sha256(name.encode(errors="surrogatepass") + b"\0" + data).digest())
        return digest.hexdigest()


def stamp(homework: Homework, question: str, seed: int = 0, public_only: bool = False) -> str:
    """What a question's facts depend on besides the submission: while this is the same, they are current."""
    told = " told" * (THE_COURSE.renamed_answers != "graded")
    told += " unproved" * (THE_COURSE.scoring == "mistakes" and is_unproved(homework, question))
    return question_digest(homework, question) + told + " public" * public_only + (f" seed {seed}" if seed else "")


def task_of(
    handin: Handin,
    homework: Homework,
    sandbox: str,
    seed: int = 0,
    questions: Collection[str] | None = None,  # all where None
    public_only: bool = False,
    right: Collection[str] = (),
) -> Task:
    """What to do about a submission that was found."""
    asked = [q.id for q in homework.questions if questions is None or q.id in questions]
    return Task(
        homework=homework.name,
        student=handin.student,
        path=handin.path,
        content=f"{handin.status}: {handin.problem}".encode() if handin.content is None else handin.content,
        suffix=handin.suffix,
        suites={question: stamp(homework, question, seed, public_only) for question in asked},
        seed=seed,
        sandbox=sandbox,
        right=tuple(right),
        public_only=public_only,
        checkpoints=handin.files_for(homework.name),
        assumptions=handin.assumptions,
    )


def grade_task(task: Task) -> Outcome:
    """Grade one submission in a box; whatever happens becomes an outcome."""
    start = time.perf_counter()
    torch.set_num_threads(1)
    homework, exam, diagnostician = tools(task.homework)

    def outcome(status: str, **facts: object) -> Outcome:
        told = {"suites": {}, "seconds": time.perf_counter() - start, **facts}
        return Outcome(task.student, task.path, task.digest, seed=task.seed, status=status, **told)  # type: ignore[arg-type]

    try:
        submission = parse_submission(task.content, task.suffix, homework)
    except BadSubmission as error:
        return unreadable(task, str(error), error.status)
    except Exception as error:  # ours: one submission's trouble, never the class's
        return outcome("infrastructure", notes=(f"The file could not be read: {type(error).__name__}: {error}",))
    try:
        boxes = factory(task.sandbox)
    except Infrastructure as error:
        return outcome("infrastructure", notes=(str(error),))
    files = dict(task.checkpoints)
    candidate = Candidate(submission, boxes, files)

    def open_sitting(limits: Limits, help: Help | None) -> Sitting:
        if help is None:
            return candidate.open(limits)
        return sit_helped(  # its notes are not told
            submission, homework, help, lambda asked, relay: Candidate(asked, boxes, relay=relay).open(limits)
        )

    questions = [question for question in homework.questions if question.id in task.suites]
    try:
        with Seat(open_sitting, boxes.limits, PROCESSOR) as seat, _at_most(PROCESSOR):
            results = examine(
                exam, diagnostician, seat, questions, task.seed, public_only=task.public_only, right=task.right
            )
    except Exception as error:  # ours: one submission's trouble, never the class's
        return outcome("infrastructure", notes=(f"The judge failed: {type(error).__name__}: {error}",))
    assumed = (*task.assumptions, *submission.assumptions, *candidate.assumptions)
    broken = [case for result in results for case in result.cases if case.verdict is Verdict.INFRASTRUCTURE]
    return outcome(
        "infrastructure" if broken else "graded",
        suites={result.question: task.suites[result.question] for result in results if not _broken(result)},
        cases=tuple(case for result in results for case in result.cases),
        diagnoses={result.question: result.diagnosis for result in results if result.diagnosis},
        notes=(*candidate.notes, *(f"{c.case}: {c.message}" for c in broken[:1])),
        assumptions=tuple(replace(one, student=task.student) for one in assumed),
        printed=candidate.printed,
        texts=submission.texts,
        box=boxes.backend,
    )


def unreadable(task: Task, told: str, status: str) -> Outcome:
    """The outcome of a submission in which there is nothing to grade: its kind and a sentence say why."""
    kind = status if status in KINDS else "unreadable"
    assumed = (*task.assumptions, Assumption(kind, told, where=task.path, student=task.student))
    return Outcome(
        task.student, task.path, task.digest, dict(task.suites), task.seed, status, assumptions=assumed
    )  # fmt: skip


@contextmanager
def _at_most(processor: float) -> Iterator[None]:
    """Stop the case that is at work after so many seconds of this process's own time; others' work counts for nothing.

    Threads of a cluster's worker cannot be stopped so; there the time is looked at between cases.
    """

    def stop(*_: object) -> None:
        raise StudentTimeout("Checking what your code gave back took too long.")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, processor, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _broken(result: QuestionResult) -> bool:
    """Whether a fault of ours is among the facts: then they are not final."""
    return any(case.verdict is Verdict.INFRASTRUCTURE for case in result.cases)


@cache
def factory(sandbox: str) -> BoxFactory:
    """The worker's boxes, opened once per process."""
    boxes = BoxFactory(sandbox, Limits())
    boxes.__enter__()
    return boxes
