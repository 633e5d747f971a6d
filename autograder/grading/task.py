"""Grade one submission: what a worker does, whether it is a process here or on a cluster."""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache

import torch

from autograder.box.limits import Limits
from autograder.box.sandbox import BoxFactory
from autograder.grading.journal import Outcome
from autograder.homework import read_homework
from autograder.judge.examine import examine
from autograder.judge.proxies import CellOutcome, Student
from autograder.judge.results import QuestionResult
from autograder.judge.seat import Help, Seat, Sitting
from autograder.judge.tools import tools
from autograder.judge.verdicts import Infrastructure, StudentFault, Verdict
from autograder.places import COURSE_UTILS, PACKAGE
from autograder.submission import (
    BadSubmission,
    RunCell,
    Submission,
    definitions_only,
    parse_submission,
    with_reference_parts,
)
from course_utils.checking import NotAnswered

MAX_PRINTED = 64 * 1024  # bytes kept of what all cells print together
MAX_NOTES = 100
MAX_LOST_CELLS = 8  # cells that may hang or kill their box before a submission is run no further

WORTH = {"points", "minutes", "difficulty"}  # what a question is worth is no fact about an answer


@dataclass(frozen=True)
class Task:
    """One submission to grade, complete: a worker needs nothing else."""

    homework: str
    student: str
    path: str
    content: bytes
    suffix: str
    suite: str
    seed: int
    sandbox: str
    questions: tuple[str, ...] = ()  # all where empty
    public_only: bool = False
    checkpoints: tuple[tuple[str, bytes], ...] = ()  # files put beside the notebook in the box
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A hash of what was handed in, by which a finished submission is known."""
        digest = hashlib.sha256(self.content)
        for name, data in self.checkpoints:
            digest.update(hashlib.sha256(name.encode(errors="surrogatepass") + b"\0" + data).digest())
        return digest.hexdigest()


def grade_task(task: Task) -> Outcome:
    """Grade one submission in a box; whatever happens becomes an outcome."""
    start = time.perf_counter()
    torch.set_num_threads(1)
    homework, exam, diagnostician = tools(task.homework)

    def outcome(status: str, **facts: object) -> Outcome:
        told = {"seconds": time.perf_counter() - start, **facts}
        return Outcome(task.student, task.path, task.digest, task.suite, task.seed, status, **told)  # type: ignore[arg-type]

    try:
        submission = parse_submission(task.content, task.suffix, homework)
    except BadSubmission as error:
        return outcome("unreadable", notes=(str(error),))
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
        return Candidate(with_reference_parts(submission, homework, *help), boxes).open(
            limits
        )  # its notes are not told

    questions = [question for question in homework.questions if not task.questions or question.id in task.questions]
    try:
        with Seat(open_sitting, boxes.limits) as seat:
            results = examine(exam, diagnostician, seat, questions, task.seed, public_only=task.public_only)
    except Exception as error:  # ours: one submission's trouble, never the class's
        return outcome("infrastructure", notes=(f"The judge failed: {type(error).__name__}: {error}",))
    return outcome(
        _status(results),
        cases=tuple(case for result in results for case in result.cases),
        diagnoses={result.question: result.diagnosis for result in results if result.diagnosis},
        notes=(*task.notes, *submission.notes, *candidate.notes),
        printed=candidate.printed,
        texts=submission.texts,
        box=boxes.backend,
    )


class Candidate:
    """Opens boxes for one submission, and remembers which of its cells cannot be run in one."""

    def __init__(self, submission: Submission, boxes: BoxFactory, files: Mapping[str, bytes] | None = None) -> None:
        self._cells = submission.cells
        self._boxes = boxes
        self._files = files or {}
        self._runs: list[list[RunCell]] = [[cell] for cell in self._cells]  # what is run of each cell
        self._one_by_one = False
        self._told = self._out_of_time = False
        self.notes: list[str] = []
        self.printed = ""

    def open(self, limits: Limits) -> Sitting:
        """A box in which every cell has run, but for those that ended one, or that there was no time for."""
        deadline = time.monotonic() + limits.wall_submission
        while True:
            box = self._boxes.open(limits)
            student = Student(box.channel, wall=limits.wall)
            try:
                if self._files:
                    student.add_files(self._files)
                loaded = self._load(student, limits, deadline)
            except BaseException:
                box.close()
                raise
            if loaded:
                return Sitting(student, box.close)
            box.close()

    def _load(self, student: Student, limits: Limits, deadline: float) -> bool:
        """Run the cells, all in one request; once that has failed, one by one. False where it takes another box."""
        left = [number for number, run in enumerate(self._runs) if run]
        if len(self._runs) - len(left) >= MAX_LOST_CELLS:
            left = []
        reports: list[tuple[int, CellOutcome]] = []
        for numbers in [[number] for number in left] if self._one_by_one or not left else [left]:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                self._tell_out_of_time(numbers[0])
                break
            run = [(number, cell) for number in numbers for cell in self._runs[number]]
            try:
                outcomes = student.load([asdict(cell) for _, cell in run], wall=min(limits.wall_cell, seconds))
            except (NotAnswered, StudentFault) as fault:
                if time.monotonic() >= deadline:
                    self._tell_out_of_time(numbers[0])
                elif self._one_by_one:
                    self._lose(numbers[0], fault)
                self._one_by_one = True
                return False
            reports += [(number, outcome) for (number, _), outcome in zip(run, outcomes, strict=True)]
        faults = [(number, report) for number, report in reports if report.fault is not None]
        if not self._told:  # a fresh box tells the same again, perhaps in other words
            if self._complete([number for number, _ in faults], student):
                return False
            self._told = True
            self.notes += [f"{report.id}: {report.fault}" for _, report in faults][:MAX_NOTES]
            self.printed = "".join(report.printed for _, report in reports)[:MAX_PRINTED]
        return True

    def _lose(self, number: int, fault: Exception) -> None:
        """A cell has ended its box: of an answer cell only the definitions are tried next, of any other nothing."""
        cell = self._cells[number]
        rest = definitions_only(cell) if cell.keep and self._runs[number] == [cell] else None
        self._runs[number] = [] if rest is None else [rest]
        kept = "" if rest is None else " but for its imports, functions, classes and simple assignments"
        self.notes.append(f"{cell.id}: this cell was left out{kept}: {fault}")

    def _complete(self, failed: list[int], student: Student) -> bool:
        """Where an error has kept an answer from being defined, have the cell's definitions run after it from now on.

        Gives back whether there is such a cell.
        """
        answers = {name for number in failed for name in self._cells[number].keep}
        if not answers:
            return False
        try:
            missing = answers - student.kinds(answers).keys()
        except (NotAnswered, StudentFault):  # the box is spoilt, as whoever asks next will find
            return False
        found = False
        for number in failed:
            cell = self._cells[number]
            names = tuple(name for name in cell.keep if name in missing)
            rest = definitions_only(cell) if names and self._runs[number] == [cell] else None
            if rest is not None:
                found = True
                self._runs[number] = [cell, replace(rest, keep=names)]
                told = ", ".join(f"`{name}`" for name in names)
                self.notes.append(
                    f"{cell.id}: this cell stopped at an error before it had defined {told}; "
                    "its imports, functions, classes and simple assignments were run all the same."
                )
        return found

    def _tell_out_of_time(self, number: int) -> None:
        if not (self._told or self._out_of_time):
            self._out_of_time = True
            told = "was not run, nor what is below it: your notebook has used up the time for one submission"
            self.notes.append(f"{self._cells[number].id}: this cell {told}.")


def _status(results: list[QuestionResult]) -> str:
    broken = any(case.verdict is Verdict.INFRASTRUCTURE for result in results for case in result.cases)
    return "infrastructure" if broken else "graded"


@cache
def factory(sandbox: str) -> BoxFactory:
    """The worker's boxes, opened once per process."""
    boxes = BoxFactory(sandbox, Limits())
    boxes.__enter__()
    return boxes


@cache
def suite_digest(name: str) -> str:
    """A hash of everything on which the facts about a submission depend, besides the submission.

    Points and weights are no part of it: scores are computed from facts, afterwards. Nor are texts.
    """
    homework = read_homework(name)
    digest = hashlib.sha256()
    for cell in homework.cells:
        if cell.kind == "code" or "explain" in cell.metadata:
            told = {key: value for key, value in cell.metadata.items() if key not in WORTH}
            digest.update(json.dumps([told, cell.source], sort_keys=True).encode())
    for path in sorted(homework.suite.rglob("*.py")):
        text = path.read_text()
        facts = _unweighed(text) if path.name.startswith("test_") else text
        digest.update(f"{path.relative_to(homework.suite)}\0{facts}\0".encode())
    ours = [path for folder in (COURSE_UTILS, PACKAGE / "judge", PACKAGE / "box") for path in folder.rglob("*.py")]
    ours += [PACKAGE / "submission.py", *(PACKAGE / "suites").glob("*.py")]
    for place, path in sorted((f"{path.parent.name}/{path.name}", path) for path in ours):
        digest.update(f"{place}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _unweighed(suite: str) -> str:
    """What a suite's code does, whatever its cases weigh."""
    try:
        code = ast.parse(suite)
    except SyntaxError:  # told where the suite is loaded
        return suite
    code.body = [node for node in code.body if not _is_import_of_pytest(node)]  # may have come for a weight
    for node in ast.walk(code):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [one for one in node.decorator_list if "mark.weight(" not in ast.unparse(one)]
    return ast.dump(code)


def _is_import_of_pytest(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and ast.unparse(node) == "import pytest"
