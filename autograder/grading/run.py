"""Grade a class: tasks to an executor, outcomes into the journal, in whatever order they come; resumable."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from autograder.box.backends import BACKENDS
from autograder.box.keeper import STRONG, pick, start_ahead, stop
from autograder.errors import BadInput
from autograder.grading.by_hand import Desk, Sheet, SheetDesk
from autograder.grading.changes import Change, read_grades, score_changes, told, written_grades
from autograder.grading.collect import Entry, collect
from autograder.grading.journal import JOURNAL, Journal, Outcome
from autograder.grading.outputs import grades_csv, report_of, reports_of, write_outputs
from autograder.grading.recompute import keep, reweighed
from autograder.grading.task import Task, factory, grade_task, suite_digest
from autograder.homework import Homework, read_homework
from autograder.judge.results import Report
from autograder.judge.tools import tools
from autograder.judge.verdicts import Infrastructure
from autograder.progress import Progress

STAGED = "regrade.jsonl"
TRIES = 3  # of a submission whose worker was lost, or whose box could not be opened


@dataclass(frozen=True)
class Run:
    """What to grade, and how."""

    source: Path
    homework: str
    out: Path
    jobs: int = 0  # 0: one per core
    sandbox: str = "auto"
    scheduler: str | None = None
    only: str | None = None
    question: str | None = None
    seed: int = 0
    regrade: bool = False
    public_only: bool = False
    dry_run: bool = False  # with `regrade`: tell the score changes and keep them for later


@dataclass(frozen=True)
class Finished:
    """How a run ended."""

    homework: Homework
    outcomes: list[Outcome]  # of the students in the source
    graded: int
    sandbox: str
    by_hand: Sheet
    interrupted: bool = False
    changes: Sequence[Change] = ()  # of a regrade

    def report(self, outcome: Outcome) -> Report:
        """The scores of one of the outcomes."""
        return report_of(self.homework, outcome, self.by_hand)


def run(options: Run, tell: Callable[[str], None] = print, desk: Desk | None = None) -> Finished:
    """Grade what is not yet graded and write what follows from it; the same call again goes on where it stopped."""
    desk = desk or SheetDesk(options.out)
    homework = read_homework(options.homework)
    if options.question and options.question not in {question.id for question in homework.questions}:
        raise BadInput(f"{options.homework} has no question {options.question}.")
    if options.dry_run and not options.regrade:
        raise BadInput("--dry-run tells what --regrade would change: give both.")
    by_hand = desk.read(homework)
    entries = _chosen(options)
    sandbox = pick(options.sandbox)
    tell(f"Boxes: {sandbox}, {BACKENDS[sandbox].summary}.")
    if sandbox not in STRONG:
        tell("Warning: this is no wall against people you cannot trust. See `autograder doctor`.")
    options = replace(options, sandbox=sandbox)
    with Journal(options.out / JOURNAL, homework.name) as journal:
        before = {student: outcome.digest for student, outcome in journal.outcomes.items()}
        target = Journal(options.out / STAGED, homework.name) if options.regrade else journal
        todo = [entry for entry in entries if not _finished(entry, target, options)]
        if len(todo) < len(entries):
            tell(f"{len(entries) - len(todo)} of {len(entries)} submissions are graded already.")
        interrupted = not _grade(options, todo, journal, target, homework)
        changes: list[Change] = []
        if options.regrade:
            with target:
                graded = {e.student: target.outcomes[e.student] for e in entries if e.student in target.outcomes}
            if not interrupted:
                changes = _changes(homework, reweighed(journal.outcomes, homework.name) | graded, by_hand, options.out)
                tell(told(changes))
            if options.dry_run:
                tell("Nothing is applied. The same command without --dry-run applies it.")
            elif not interrupted:
                keep(journal, graded)
            if options.question or not (interrupted or options.dry_run):
                target.path.unlink()  # else it waits for the same command, or for the one that applies it
            if options.dry_run:
                return Finished(homework, list(graded.values()), len(todo), sandbox, by_hand, interrupted, changes)
        keep(journal, reweighed(journal.outcomes, homework.name))
        outcomes = [journal.outcomes[entry.student] for entry in entries if entry.student in journal.outcomes]
        fresh = {student for student, outcome in journal.outcomes.items() if before.get(student) != outcome.digest}
        by_hand = desk.settle(homework, journal.outcomes, fresh)
        write_outputs(homework, journal.outcomes, options.out, by_hand)
    return Finished(homework, outcomes, len(todo), sandbox, by_hand, interrupted, changes)


def _chosen(options: Run) -> list[Entry]:
    entries = collect(options.source, options.homework)
    if options.only is None:
        return entries
    chosen = [entry for entry in entries if entry.student == options.only]
    if not chosen:
        known = ", ".join(entry.student for entry in entries[:10])
        raise BadInput(
            f"No submission of {options.only} in {options.source}. Found: {known}{' ...' * (len(entries) > 10)}"
        )
    return chosen


def _task(entry: Entry, options: Run) -> Task:
    return Task(
        homework=options.homework,
        student=entry.student,
        path=entry.path,
        content=entry.content or b"",
        suffix=entry.suffix,
        suite=suite_digest(options.homework) + (" public" if options.public_only else ""),
        seed=options.seed,
        sandbox=options.sandbox,
        questions=(options.question,) if options.question else (),
        public_only=options.public_only,
        checkpoints=entry.files_for(options.homework),
        notes=entry.notes,
    )


def _finished(entry: Entry, journal: Journal, options: Run) -> bool:
    """Whether the journal holds this very file, graded whole with this very suite."""
    outcome = journal.outcomes.get(entry.student)
    if outcome is None or options.question or outcome.status not in ("graded", "unreadable"):
        return False
    return outcome.key == blank(_task(entry, options)).key


def blank(task: Task, status: str = "", note: str = "") -> Outcome:
    """An outcome without results, for a task that was not or could not be run."""
    return Outcome(task.student, task.path, task.digest, task.suite, task.seed, status, notes=(note,) if note else ())


def _grade(options: Run, todo: list[Entry], journal: Journal, target: Journal, homework: Homework) -> bool:
    """Run the tasks; True when all are done, False after Ctrl-C."""
    tasks = []
    for entry in todo:
        if entry.content is None:
            target.add(blank(_task(entry, options), "unreadable", entry.problem))
        else:
            tasks.append(_task(entry, options))
    if not tasks:
        return True
    with Progress(len(tasks)) as progress:
        try:
            for outcome in outcomes(tasks, options):
                target.add(_merged(outcome, journal.outcomes.get(outcome.student), options, homework))
                progress.step(outcome.student)
        except KeyboardInterrupt:
            progress.note("Stopped. What is graded is kept; the same command goes on from here.")
            return False
    return True


def outcomes(tasks: list[Task], options: Run) -> Iterator[Outcome]:
    """The outcome of every task, as they come; a lost worker costs a retry, never a submission."""
    left = {task.student: task for task in tasks}
    for attempt in range(TRIES):
        last = attempt == TRIES - 1
        try:
            with _executor(options, len(left)) as executor:
                for outcome in _through(executor, list(left.values())):
                    if outcome.status == "infrastructure" and not last:
                        continue
                    del left[outcome.student]
                    yield outcome
        except (BrokenProcessPool, OSError):
            continue
        if not left:
            return
    for task in left.values():
        yield blank(task, "infrastructure", "The worker that graded this submission was lost again and again.")


def _through(executor: Executor, tasks: list[Task]) -> Iterator[Outcome]:
    """Keep a bounded number of tasks in flight, so that a class of thousands does not wait in memory."""
    waiting = iter(tasks)
    running: set[Future[Outcome]] = set()
    task_of: dict[Future[Outcome], Task] = {}
    limit = 4 * (os.cpu_count() or 1) + 8
    try:
        while True:
            while len(running) < limit and (task := next(waiting, None)) is not None:
                future = executor.submit(grade_task, task)
                task_of[future] = task
                running.add(future)
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield _outcome(future, task_of.pop(future))
    finally:
        for future in running:
            future.cancel()


def _outcome(future: Future[Outcome], task: Task) -> Outcome:
    """What a task came to; an exception that nobody foresaw is that submission's alone, and it is tried again."""
    try:
        return future.result()
    except BrokenProcessPool:  # all that were in flight are lost
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
        return blank(task, "infrastructure", f"The submission could not be graded: {told}")


@contextmanager
def _executor(options: Run, tasks: int) -> Iterator[Executor]:
    """Processes here, or the workers of a Dask cluster: both speak concurrent.futures."""
    if options.scheduler:
        with _dask(options.scheduler) as executor:
            yield executor
        return
    start_ahead(options.sandbox)
    workers = max(1, min(options.jobs or os.cpu_count() or 1, tasks))
    context = multiprocessing.get_context("fork")
    torch.set_num_threads(1)
    tools(options.homework)[1].warm_up()  # once, before the workers are forked
    gc.collect()
    gc.freeze()
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(options.sandbox,))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        gc.unfreeze()
        stop()


def _start_worker(sandbox: str) -> None:
    """A worker leaves Ctrl-C to the parent, dies with it, and has its zygote ready for its first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    torch.set_num_threads(1)
    with suppress(Infrastructure):  # told with the first task
        factory(sandbox)


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise BadInput("--scheduler needs Dask: pip install 'dask[distributed]'.") from None
    try:
        client: Any = Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise BadInput(f"No Dask scheduler answers at {address} ({error}).") from None
    with client, client.get_executor() as executor:
        yield executor


def _merged(new: Outcome, old: Outcome | None, options: Run, homework: Homework) -> Outcome:
    """With --question, the new cases take the place of the old ones of that question; the rest stays."""
    if not options.question or new.status == "unreadable":
        return new
    if old is None or old.key != new.key:
        return replace(new, status="partial")
    cases = [case for case in old.cases if case.question != options.question] + list(new.cases)
    order = {question.id: number for number, question in enumerate(homework.questions)}
    diagnoses = {q: d for q, d in old.diagnoses.items() if q != options.question} | new.diagnoses
    return replace(old, cases=tuple(sorted(cases, key=lambda case: order[case.question])), diagnoses=diagnoses)


def _changes(homework: Homework, outcomes: dict[str, Outcome], by_hand: Sheet, out: Path) -> list[Change]:
    """Whose score would differ from the grades as they were last written."""
    new = grades_csv(homework, outcomes, reports_of(homework, outcomes, by_hand))
    return score_changes(written_grades(out), read_grades(new))
