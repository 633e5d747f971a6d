"""A submission at the door: opens boxes for it, runs its cells there, and gives up on those that end a box."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace

from autograder.assumptions import Assumption
from autograder.box.limits import Limits
from autograder.box.sandbox import BoxFactory
from autograder.judge.proxies import CellOutcome, Student
from autograder.judge.relay import Relay
from autograder.judge.seat import Sitting
from autograder.judge.verdicts import StudentFault
from autograder.submission import RunCell, Submission, defines, definitions_only, with_soft_imports
from course_utils.checking.compare import NotAnswered

MAX_PRINTED = 64 * 1024  # bytes kept of what all cells print together
MAX_NOTES = 100
NO_GPU = "this cell asks for a GPU. There is none where this was graded: what it put there stayed on the CPU."
MAX_LOST_CELLS = 8  # cells that may hang or kill their box before a submission is run no further


class Candidate:
    """Opens boxes for one submission, and remembers which of its cells cannot be run in one."""

    def __init__(
        self,
        submission: Submission,
        boxes: BoxFactory,
        files: Mapping[str, bytes] | None = None,
        relay: Relay | None = None,
    ) -> None:
        """With a `relay`, cells may have stand-ins for parts in another box."""
        self._cells = submission.cells
        self._boxes = boxes
        self._files = files or {}
        self._relay = relay
        self._runs: list[list[RunCell]] = [[cell] for cell in self._cells]  # what is run of each cell
        self._one_by_one = False
        self._told = self._out_of_time = False
        self.notes: list[str] = []
        self.assumptions: list[Assumption] = []
        self.printed = ""

    def open(self, limits: Limits) -> Sitting:
        """A box in which every cell has run, but for those that ended one, or that there was no time for."""
        deadline = time.monotonic() + limits.wall_submission
        while True:
            box = self._boxes.open(limits)
            student = Student(box.channel, wall=limits.wall, autograd=bool(limits.autograd))
            try:
                if self._relay is not None:
                    student.relay = self._relay
                    self._relay.serve(box.channel)
                if self._files:
                    student.add_files(self._files)
                loaded = self._load(student, limits, deadline)
            except BaseException:
                box.close()
                raise
            if loaded:
                return Sitting(student, box.close, box.waited)
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
            for number in list(dict.fromkeys(number for number, report in reports if report.on_cpu))[:MAX_NOTES]:
                self._assume(self._cells[number], NO_GPU)
            self.printed = "".join(report.printed for _, report in reports)[:MAX_PRINTED]
        return True

    def _lose(self, number: int, fault: Exception) -> None:
        """A cell has ended its box: of an answer cell only the definitions are tried next, of any other nothing."""
        cell = self._cells[number]
        rest = definitions_only(cell) if cell.keep and self._runs[number] == [cell] else None
        self._runs[number] = [] if rest is None else [rest]
        kept = "" if rest is None else " but for its imports, functions, classes and simple assignments"
        self._assume(cell, f"this cell was left out{kept}: {fault}")

    def _complete(self, failed: list[int], student: Student) -> bool:
        """Where an error has kept a function or a class from being defined, an answer or what answers may use, have the
        cell's definitions run after it from now on, without what they import in vain.

        Gives back whether there is such a cell.
        """
        wanted = {number: defines(self._cells[number]) for number in failed}
        asked = {name for names in wanted.values() for name in names}
        if not asked:
            return False
        try:
            missing = asked - student.kinds(asked).keys()
        except (NotAnswered, StudentFault):  # the box is spoilt, as whoever asks next will find
            return False
        found = False
        for number in failed:
            cell = self._cells[number]
            names = tuple(name for name in wanted[number] if name in missing)
            if not names or self._runs[number] != [cell]:
                continue
            rest = definitions_only(cell)
            rest = with_soft_imports(rest or cell) or rest
            if rest is not None:
                found = True
                self._runs[number] = [cell, replace(rest, keep=tuple(name for name in cell.keep if name in names))]
                told = ", ".join(f"`{name}`" for name in names)
                self._assume(
                    cell,
                    f"this cell stopped at an error before it had defined {told}; "
                    "its imports, functions, classes and simple assignments were run all the same.",
                )
        return found

    def _tell_out_of_time(self, number: int) -> None:
        if not (self._told or self._out_of_time):
            self._out_of_time = True
            told = "was not run, nor what is below it: your notebook has used up the time for one submission"
            self._assume(self._cells[number], f"this cell {told}.")

    def _assume(self, cell: RunCell, told: str) -> None:
        self.assumptions.append(Assumption("cell", f"{cell.id}: {told}", where=cell.id))
