"""Grade a class: tasks to an executor, outcomes into the journal, in whatever order they come; resumable."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from autograder.assumptions import FILES, Assumption
from autograder.box.backends import BACKENDS
from autograder.box.keeper import STRONG, pick, start_ahead, stop
from autograder.errors import BadInput
from autograder.failing import unproved
from autograder.grading.belonging import check as check_records
from autograder.grading.belonging import located, origin, owner_of
from autograder.grading.by_hand import Desk, SheetDesk
from autograder.grading.changes import Change, told
from autograder.grading.collect import Collected, Handin, gather
from autograder.grading.decided import Decided, decided
from autograder.grading.journal import JOURNAL, Class, Journal, Outcome, known
from autograder.grading.outputs import all_assumed, report_of, write_outputs
from autograder.grading.recompute import changes_of, keep, outdated, reweighed, told_late, told_outdated
from autograder.grading.roster import missing_and_unknown
from autograder.grading.rules import Rules
from autograder.grading.seeds import draw, going_on, seedless
from autograder.grading.task import Task, factory, grade_task, task_of, unreadable
from autograder.grading.times import HandinTime, handed_in
from autograder.homework import Homework, read_homework
from autograder.judge.results import Report, by_question
from autograder.judge.tools import tools
from autograder.judge.verdicts import Infrastructure, Verdict
from autograder.places import THE_COURSE, package_version
from autograder.progress import Progress

STAGED = "regrade{}.jsonl"
TRIES = 3  # of a submission whose box could not be opened, or whose worker on a cluster was lost
ATTENTIVE = 0.2  # seconds after which a wait for workers looks up
ALONE = 2  # tries of a submission that may have ended its worker
ENDS_WORKERS = (
    "Grading this submission ended the process that did it, alone too: it is not graded. "
    "Look at the notebook; `autograder grade --only` tries it again."
)
WORKER_MEMORY = 4 * 2**30  # bytes that a worker may take beyond what it has when it starts


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
    seed: int | None = None  # None: the journal's, else a new one that nobody knows
    regrade: bool = False
    public_only: bool = False
    rules: Rules = Rules()  # dates, what lateness costs, how much pages tell of hidden cases
    dry_run: bool = False  # with `regrade`: tell the score changes and keep them for later
    worker_memory: int = WORKER_MEMORY
    replace: bool = False  # records that came from another source give way too
    roster: Path | None = None  # who should have handed in


@dataclass(frozen=True)
class Finished:
    """How a run ended."""

    homework: Homework
    outcomes: list[Outcome]  # of the students in the source
    graded: int
    sandbox: str
    people: Decided
    interrupted: bool = False
    changes: Sequence[Change] = ()  # of a regrade
    assumptions: Sequence[Assumption] = ()

    def report(self, outcome: Outcome) -> Report:
        """The scores of one of the outcomes."""
        return report_of(self.homework, outcome, self.people)


def run(options: Run, tell: Callable[[str], None] = print, desk: Desk | None = None) -> Finished:
    """Grade what is not yet graded and write what follows from it; the same call again goes on where it stopped."""
    desk = desk or SheetDesk(options.out)
    homework = read_homework(options.homework)
    if options.question and options.question not in {question.id for question in homework.questions}:
        raise BadInput(f"{options.homework} has no question {options.question}.")
    if options.dry_run and not options.regrade:
        raise BadInput("--dry-run tells what --regrade would change: give both.")
    people = decided(options.out, homework, desk, options.rules)
    graded_before = located(known(options.out / JOURNAL, homework.name), options.out)
    owner = owner_of(options.source, graded_before, options.replace)
    collected = gather(options.source, homework, owner)
    entries = _chosen(collected.entries, options)
    handed = handed_in(options.source, entries)
    sandbox = pick(options.sandbox)
    tell(f"Boxes: {sandbox}, {BACKENDS[sandbox].summary}.")
    if sandbox not in STRONG:
        tell("Warning: this is no wall against people you cannot trust. See `autograder doctor`.")
    if THE_COURSE.scoring == "mistakes" and (unknown := unproved(homework)):
        tell(
            f"Warning: nobody knows which cases the known mistakes of {', '.join(unknown)} fail, so there one mistake "
            f"costs as much as its failed cases. `autograder verify {homework.name}` finds out; then grade again."
        )
    options = replace(options, sandbox=sandbox)
    with Journal(options.out / JOURNAL, homework.name) as journal:
        before = {student: outcome.digest for student, outcome in journal.outcomes.items()}
        if not (options.replace or owner):
            files = [task_of(entry, homework, sandbox) for entry in entries]
            check_records(files, located(journal.outcomes, options.out), options.source, options.out)
        target = Journal(options.out / staged_name(options.question), homework.name) if options.regrade else journal
        tasks = _tasks(entries, journal, target, options, homework)
        todo = [task for task in tasks if _left(task, target, options)]
        if len(todo) < len(entries):
            tell(f"{len(entries) - len(todo)} of {len(entries)} submissions are graded already.")
        if chosen := _chosen_alone(todo, homework):
            tell(f"To be graded: {', '.join(chosen)}. What is known of the other questions stays.")
        by_student = {entry.student: entry for entry in entries}
        interrupted = not _grade(options, todo, by_student, journal, target, homework, handed, owner)
        changes: list[Change] = []
        if options.regrade:
            with target:
                found = [target.outcomes[e.student] for e in entries if e.student in target.outcomes]
                graded = {o.student: _of_question(o, journal, options.question, homework) for o in found}
            if not interrupted:
                seen = _handed(reweighed(journal.outcomes, homework.name) | graded, handed)
                changes = changes_of(homework, seen, people, options.out)
                tell(told(changes))
            if options.dry_run:
                tell("Nothing is applied. The same command without --dry-run applies it.")
            elif not interrupted:
                keep(journal, graded)
            if not (interrupted or options.dry_run):
                target.path.unlink()  # else it waits for the same command, or for the one that applies it
            if options.dry_run:
                seen = journal.outcomes | graded
                outcomes = [seen[entry.student] for entry in entries if entry.student in seen]
                assumed = all_assumed(seen, people, journal.of_class.assumptions)
                return Finished(homework, outcomes, len(todo), sandbox, people, interrupted, changes, assumed)
        keep(journal, _handed(reweighed(journal.outcomes, homework.name), handed))
        _keep_class(journal, collected, entries, options)
        outcomes = [journal.outcomes[entry.student] for entry in entries if entry.student in journal.outcomes]
        fresh = {student for student, outcome in journal.outcomes.items() if before.get(student) != outcome.digest}
        sheet = desk.settle(homework, journal.outcomes, fresh, people.waived)
        people = replace(people, sheet=sheet, outdated=outdated(homework, journal.outcomes))
        of_class = journal.of_class.assumptions
        assumed = write_outputs(homework, journal.everybody, options.out, people, of_class=of_class)
        for line in (told_outdated(homework, journal.outcomes), *told_late(journal.outcomes, people)):
            if line:
                tell(line)
    return Finished(homework, outcomes, len(todo), sandbox, people, interrupted, changes, assumed)


def _keep_class(journal: Journal, collected: Collected, entries: list[Handin], options: Run) -> None:
    """Write down what was assumed about files, of graded submissions too, and who of the roster is missing."""
    everybody = list(journal.outcomes)
    missing = tuple(student for student in journal.of_class.missing if student not in journal.outcomes)
    unknown = {one.student: [one] for o in journal.outcomes.values() for one in o.assumptions if one.kind == "roster"}
    if options.roster is not None:
        found, strangers = missing_and_unknown(options.roster, everybody)
        missing = tuple(found)
        told = f"Graded, but not on the roster {options.roster.name}."
        unknown = {student: [Assumption("roster", told, student=student)] for student in strangers}
    journal.add_class(Class(collected.assumptions if options.only is None else journal.of_class.assumptions, missing))
    files = {entry.student: entry.assumptions for entry in entries}
    kept = {}
    for student, outcome in journal.outcomes.items():
        old = [one for one in outcome.assumptions if one.kind in FILES]
        if not outcome.void and student in files:
            old = list(files[student])
        rest = [one for one in outcome.assumptions if one.kind not in (*FILES, "roster")]
        kept[student] = replace(outcome, assumptions=(*old, *rest, *unknown.get(student, ())))
    keep(journal, kept)


def _chosen(entries: list[Handin], options: Run) -> list[Handin]:
    if options.only is None:
        return entries
    chosen = [entry for entry in entries if entry.student == options.only]
    if not chosen:
        known = ", ".join(entry.student for entry in entries[:10])
        raise BadInput(
            f"No submission of {options.only} in {options.source}. Found: {known}{' ...' * (len(entries) > 10)}"
        )
    return chosen


def _tasks(entries: list[Handin], journal: Journal, target: Journal, options: Run, homework: Homework) -> list[Task]:
    """What is to be graded: of every submission the questions whose facts are not current, whatever seed was drawn.

    A regrade with nothing to bring up to date grades all that it is asked for again.
    """
    wanted = (options.question,) if options.question else None
    seed = going_on(target.outcomes) if options.seed is None else options.seed

    def task(entry: Handin, seed: int) -> Task:
        return task_of(entry, homework, options.sandbox, seed, wanted, options.public_only)

    whole = [task(entry, seed) for entry in entries]
    if options.seed is None:
        whole = [
            task(entry, draw()) if _handed_in_anew(asked, target) else asked
            for asked, entry in zip(whole, entries, strict=True)
        ]
    stale = [task for task in whole if _left(task, journal, options)]
    if options.regrade and not stale:
        return whole
    return [_narrowed(task, journal, options, homework) for task in stale]


def _handed_in_anew(task: Task, journal: Journal) -> bool:
    """Whether the journal knows another file of this student: who has seen feedback gets other inputs."""
    outcome = journal.outcomes.get(task.student)
    return outcome is not None and outcome.digest != task.digest


def _narrowed(task: Task, journal: Journal, options: Run, homework: Homework) -> Task:
    """The task without the questions whose facts are current, and with what they tell about the others."""
    outcome, left = journal.outcomes.get(task.student), _left(task, journal, options)
    if outcome is None or outcome.digest != task.digest or outcome.void:
        return task
    cases = by_question(homework, outcome.cases)
    right = (q for q in outcome.suites if q not in left and all(c.verdict is Verdict.PASSED for c in cases.get(q, ())))
    return replace(task, suites=left, right=tuple(right))


def _left(task: Task, journal: Journal, options: Run) -> dict[str, str]:
    """What the journal does not hold of this very file as it would come out now; a seed counts where one is given."""
    outcome = journal.outcomes.get(task.student)
    found = outcome.suites if outcome is not None and outcome.digest == task.digest else {}
    if options.seed is not None:
        return {question: stamp for question, stamp in task.suites.items() if found.get(question) != stamp}
    return {q: stamp for q, stamp in task.suites.items() if seedless(found.get(q, "")) != seedless(stamp)}


def _chosen_alone(tasks: Iterable[Task], homework: Homework) -> list[str]:
    """The questions that are graded where others are not; none where every task is about all of them."""
    asked = [question.id for question in homework.questions]
    partly = [task.suites.keys() for task in tasks if len(task.suites) < len(asked)]
    return [question for question in asked if any(question in suites for suites in partly)]


def blank(task: Task, status: str = "", note: str = "") -> Outcome:
    """An outcome without results, for a task that was not or could not be run."""
    suites = {} if status == "infrastructure" else dict(task.suites)
    return Outcome(task.student, task.path, task.digest, suites, task.seed, status, notes=(note,) if note else ())


def _grade(
    options: Run,
    todo: list[Task],
    entries: dict[str, Handin],
    journal: Journal,
    target: Journal,
    homework: Homework,
    handed: Mapping[str, HandinTime],
    owner: str | None = None,
) -> bool:
    """Run the tasks; True when all are done, False after Ctrl-C."""
    certain = options.replace or owner is not None
    old_ones = located(journal.outcomes, options.out)
    sources = {t.student: origin(old_ones.get(t.student), options.source, options.out, certain) for t in todo}
    tasks = []
    for task in todo:
        if entries[task.student].content is None:
            unread = unreadable(task, entries[task.student].problem, entries[task.student].status)
            target.add(replace(unread, source=sources[task.student], **_graded_now(handed[task.student])))
        else:
            tasks.append(task)
    if not tasks:
        return True
    asked = {task.student: task for task in tasks}
    with Progress(len(tasks)) as progress:
        try:
            for outcome in outcomes(tasks, options):
                old = journal.outcomes.get(outcome.student)
                merged = _merged(outcome, old, asked[outcome.student], homework)
                now = _graded_now(handed[outcome.student])
                target.add(replace(merged, source=sources[outcome.student], **now))
                progress.step(outcome.student)
        except KeyboardInterrupt:
            progress.note("Stopped. What is graded is kept; the same command goes on from here.")
            return False
    return True


def _graded_now(handed: HandinTime) -> dict[str, Any]:
    """What a record says about its moments: when the file was handed in, and when and by which version it is graded."""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    told = {"handed": handed.at, "marked": handed.late, "dated": handed.dated}
    return {**told, "graded": now, "graded_by": package_version()}


def _handed(outcomes: Mapping[str, Outcome], handed: Mapping[str, HandinTime]) -> dict[str, Outcome]:
    """The outcomes with the moments that the source tells now; what it does not tell stays as it is known."""

    def told(outcome: Outcome) -> Outcome:
        now = handed.get(outcome.student, HandinTime())
        if not now.at and now.late is None:
            return outcome
        return replace(outcome, handed=now.at, marked=now.late)

    return {student: told(outcome) for student, outcome in outcomes.items()}


def outcomes(tasks: list[Task], options: Run) -> Iterator[Outcome]:
    """The outcome of every task, as they come; a lost worker costs a retry, never a submission.

    Who was being graded when a worker was lost is graded alone, so that one who ends workers is found and stops nobody.
    """
    left = {task.student: task for task in tasks}
    attempt = 0
    while left and attempt < TRIES:
        flying: dict[str, Task] = {}
        try:
            with _executor(options, len(left)) as executor:
                for outcome in _through(executor, list(left.values()), flying, _at_once(options, len(left))):
                    if outcome.status == "infrastructure" and attempt < TRIES - 1:
                        continue
                    del left[outcome.student]
                    yield outcome
        except (BrokenProcessPool, OSError):
            for student, task in flying.items():
                yield _alone(task, options)
                del left[student]
            if flying:
                continue
        attempt += 1
    for task in left.values():
        yield blank(task, "infrastructure", "The worker that graded this submission was lost again and again.")


def _alone(task: Task, options: Run) -> Outcome:
    """The outcome of a task that may have ended its worker, in a process of its own."""
    found = blank(task, "infrastructure", ENDS_WORKERS)
    for _ in range(ALONE):
        try:
            with _executor(options, 1) as executor:
                (found,) = _through(executor, [task], {}, 1)
        except (BrokenProcessPool, OSError):
            found = blank(task, "infrastructure", ENDS_WORKERS)
        if found.status != "infrastructure":
            break
    return found


def _through(executor: Executor, tasks: list[Task], flying: dict[str, Task], limit: int) -> Iterator[Outcome]:
    """Keep a bounded number of tasks in flight, so that a class of thousands does not wait in memory."""
    waiting = iter(tasks)
    running: set[Future[Outcome]] = set()
    task_of: dict[Future[Outcome], Task] = {}
    try:
        while True:
            while len(running) < limit and (task := next(waiting, None)) is not None:
                future = executor.submit(grade_task, task)
                task_of[future] = flying[task.student] = task
                running.add(future)
            if not running:
                return
            with _ctrl_c_waits():
                done, running = wait(running, timeout=ATTENTIVE, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=_lost):
                outcome = _outcome(future, task_of[future])
                del flying[task_of.pop(future).student]
                yield outcome
    finally:
        for future in running:
            future.cancel()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C takes effect at the end of this: raised while a future's lock is taken, it would leave the lock taken."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if asked:
            signal.raise_signal(signal.SIGINT)


def _lost(future: Future[Outcome]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _at_once(options: Run, tasks: int) -> int:
    """How many tasks are given away at a time: here enough to keep every worker busy, few to suspect where one dies."""
    return 4 * (os.cpu_count() or 1) + 8 if options.scheduler else 2 * _workers(options, tasks)


def _workers(options: Run, tasks: int) -> int:
    return max(1, min(options.jobs or os.cpu_count() or 1, tasks))


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
    workers = _workers(options, tasks)
    context = multiprocessing.get_context("fork")
    torch.set_num_threads(1)
    tools(options.homework)[1].warm_up()  # once, before the workers are forked
    gc.collect()
    gc.freeze()
    told = (options.sandbox, options.worker_memory)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=told)
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool._result_queue._writer.close()  # type: ignore[attr-defined]  # nobody awaits the rest of a cut-off result
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        gc.unfreeze()
        stop()


def _start_worker(sandbox: str, memory: int) -> None:
    """A worker leaves Ctrl-C to the parent, dies with it, has its zygote ready for its first task, and some memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    torch.set_num_threads(1)
    with suppress(Infrastructure):  # told with the first task
        factory(sandbox)
    _limit_memory(memory)


def _limit_memory(more: int) -> None:
    """From here on this process may map so many bytes more; beyond them it meets a `MemoryError`, not the machine."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = mapped + more if hard == resource.RLIM_INFINITY else min(mapped + more, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


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


def _merged(new: Outcome, old: Outcome | None, task: Task, homework: Homework) -> Outcome:
    """The new facts in the place of the old ones about the same questions; where there are none, the old ones stay.

    Facts about an earlier file keep their scores until that question is graded, and the submission is `partial`.
    """
    if new.void:
        return new
    if old is None or old.void:
        old = replace(new, suites={}, cases=(), diagnoses={})
    if old.digest != new.digest:
        old = replace(old, suites={}, texts={})
    before, after = by_question(homework, old.cases), by_question(homework, new.cases)
    found = {question for question in task.suites if question in new.suites or after[question]}
    cases = {question: after[question] if question in found else before[question] for question in before}
    suites = {question: told for question, told in old.suites.items() if question in before.keys() - task.suites}
    status = new.status
    if any(case.verdict is Verdict.INFRASTRUCTURE for question in cases.values() for case in question):
        status = "infrastructure"
    elif status == "graded" and not before.keys() <= {*found, *suites, *_known(old, new)}:
        status = "partial"
    return replace(
        new,
        suites=suites | new.suites,
        status=status,
        cases=tuple(case for question in cases.values() for case in question),
        diagnoses={q: told for q, told in old.diagnoses.items() if q in before.keys() - found} | new.diagnoses,
        texts=new.texts or old.texts,
    )


def staged_name(question: str | None) -> str:
    """The journal in which a regrade waits until it is applied; one of a single question waits for the same command."""
    return STAGED.format(f"-{question}" if question else "")


def _of_question(staged: Outcome, journal: Journal, question: str | None, homework: Homework) -> Outcome:
    """A regraded outcome; where it is about one question, all else is as the journal knows it by now."""
    now = journal.outcomes.get(staged.student)
    if question is None or now is None or now.digest != staged.digest or "unreadable" in (now.status, staged.status):
        return staged
    cases = by_question(homework, now.cases) | {question: by_question(homework, staged.cases)[question]}
    others = {q: found for q, found in now.diagnoses.items() if q != question}
    return replace(
        staged,
        suites={q: told for q, told in now.suites.items() if q != question} | _at(staged.suites, question),
        cases=tuple(case for of_question in cases.values() for case in of_question),
        diagnoses=others | _at(staged.diagnoses, question),
    )


def _at(found: Mapping[str, Any], question: str) -> dict[str, Any]:
    return {question: found[question]} if question in found else {}


def _known(old: Outcome, new: Outcome) -> set[str]:
    """The questions of which there are facts about the new one's file, however old."""
    return {case.question for case in old.cases} if old.digest == new.digest else set()
