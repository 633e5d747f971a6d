"""Run a student's notebook and its public checks from the terminal, in a Python of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.explain.check_report import LABELS, CheckReport
from course_utils.explain.outcomes import CheckOutcome, Status
from course_utils.notebook.bars import GRADING
from course_utils.terminal.find_work import Work
from course_utils.terminal.notebook_file import CHECK, Cell, Notebook
from course_utils.terminal.originals import SKIPPED_TAGS, Original
from course_utils.terminal.refusals import Refusal

LIMIT = 120.0  # seconds of processor time for one cell, or for the checks of one question
FIRST = 120.0  # seconds more for Python itself to start: a cold disk takes its time over torch
PATIENCE = 10  # times the limit by the clock: a busy machine takes long over right work, and a sleeper never ends
LOOK = 0.2  # seconds between two looks at the time that is used

Tell = Callable[[str], None]  # what is told while the checks run


@dataclass
class Checked:
    """What came of a notebook's run: the report of each question that was checked, and the cells that failed."""

    reports: dict[str, CheckReport] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)  # cell's position -> what it raised
    late: set[int] = field(default_factory=set)  # those of them that were stopped for taking too long


def run_checks(work: Work, questions: list[str], limit: float = LIMIT, tell: Tell = lambda _: None) -> Checked:
    """Run the notebook without its plots and trainings, and the public checks of these questions."""
    for question in questions:
        if not (work.folder / "tests" / f"{question}.py").is_file():
            raise Refusal(
                f"There are no checks of {question} in {work.folder / 'tests'}: the notebook must lie beside the "
                f"`tests` that it came with. `course start {work.homework}` brings back those that are missing."
            )
    steps = plan(work.notebook, work.original, questions)
    checked = Checked()
    while steps:  # at most once more for each step that was stuck
        run = _Run(work, checked, tell, limit, len(questions))
        stuck, why, late = run.through(steps)
        if stuck is None:
            break
        if isinstance(stuck, int):
            checked.faults[stuck] = why
            checked.late |= {stuck} if late else set()
        else:
            status: Status = "out of time" if late else "error"
            run.keep(CheckReport(stuck, [CheckOutcome(status, "The checks run to their end.", why)]))
        steps = [step for step in steps if step.get("cell") != stuck and not _settled(step, checked)]
        if not any("check" in step for step in steps):
            break
    return checked


def plan(notebook: Notebook, original: Original, questions: list[str]) -> list[dict[str, Any]]:
    """The steps of a run: each question is checked where its check cell stands, or at the end where it has none."""
    skipped = {cell.source for cell in original.notebook.cells if cell.tags & SKIPPED_TAGS}
    steps: list[dict[str, Any]] = []
    left = list(questions)
    for cell in notebook.cells:
        question = cell.id.removeprefix(CHECK)
        if cell.id.startswith(CHECK):
            if question in left:
                left.remove(question)
                steps.append({"check": question})
        elif cell.kind == "code" and not (cell.tags & SKIPPED_TAGS or cell.source in skipped):
            steps.append({"cell": cell.position, "source": cell.source})
    return [*steps, *({"check": question} for question in left)]


def _settled(step: Mapping[str, Any], checked: Checked) -> bool:
    """Whether a step is a check that has its result; a question without an answer may have one further below."""
    report = checked.reports.get(step.get("check", ""))
    return report is not None and report.status != "not answered"


def fault_of(question: str, notebook: Notebook, checked: Checked) -> str:
    """Why a question's answer cell did not run, with its cell; an empty string where it did."""
    failing: list[Cell] = [cell for cell in notebook.with_id(question) if cell.position in checked.faults]
    return f"{failing[0].place}: {checked.faults[failing[0].position]}" if failing else ""


def is_late(question: str, notebook: Notebook, checked: Checked) -> bool:
    """Whether a question's answer cell was stopped for taking too long."""
    return any(cell.position in checked.late for cell in notebook.with_id(question))


@dataclass
class _Run:
    """One process that runs steps: what it says, and how long it takes over each of them."""

    work: Work
    checked: Checked
    tell: Tell
    limit: float
    total: int  # questions that are checked

    def through(self, steps: list[dict[str, Any]]) -> tuple[int | str | None, str, bool]:
        """Run the steps; the one at which Python stopped, why, and whether for its time; None at the end."""
        current: int | str | None = None
        with _process(self.work.folder) as process:
            lines = _lines(process, json.dumps(steps))
            began, used = time.monotonic(), processor_time(process.pid)
            while True:
                try:
                    line = lines.get(timeout=LOOK)
                except queue.Empty:
                    if late := self._late(
                        time.monotonic() - began, processor_time(process.pid) - used, current is None
                    ):
                        return current, late, True
                    continue
                if line is None:
                    if current is None:
                        raise Refusal(_no_start(process, self.work.folder))
                    return current, f"Python itself stopped here (exit code {process.wait()})", False
                if "begin" in line:
                    current = line["begin"]
                    began, used = time.monotonic(), processor_time(process.pid)
                elif "cell" in line and line["error"]:
                    self.checked.faults[line["cell"]] = line["error"]
                elif "question" in line:
                    outcomes = [CheckOutcome(**outcome) for outcome in line["outcomes"]]
                    self.keep(CheckReport(line["question"], outcomes, line["topics"]))
                elif "end" in line:
                    return None, "", False

    def keep(self, report: CheckReport) -> None:
        """Note what was found of a question, and tell it."""
        original = self.work.original
        section = next(asked.section for asked in original.questions if asked.id == report.question)
        report = report.placed(section, original.owners)
        if report.question not in self.checked.reports:
            done, found = len(self.checked.reports) + 1, report.summary
            if report.status == "out of time" or is_late(report.question, self.work.notebook, self.checked):
                found = LABELS["out of time"]
            elif fault_of(report.question, self.work.notebook, self.checked):
                found = "its cell fails"
            self.tell(f"{done} of {self.total}  {report.title}: {found}")
        self.checked.reports[report.question] = report

    def _late(self, waited: float, used: float, starting: bool) -> str:
        """Why a step is to be stopped: it has used up its limit, or nothing comes of it by the clock."""
        limit = self.limit + (FIRST if starting else 0)
        longer = f"`--limit {max(5 * self.limit, 1):g}` gives it longer"
        if waited > limit and used > limit:
            return f"it took longer than {self.limit:g} seconds of the processor and was stopped; {longer}"
        if waited > PATIENCE * limit:
            return (
                f"it was stopped after {waited:.0f} seconds by the clock, in which it had {used:.0f} of the processor: "
                f"it waits for something, or the machine is busy; {longer}"
            )
        return ""


def processor_time(pid: int) -> float:
    """Seconds of the processor that a process has used; the clock's where nothing can tell them."""
    try:
        import psutil  # type: ignore[import-untyped]  # comes with Jupyter
    except ImportError:
        return time.monotonic()
    try:
        return float(sum(psutil.Process(pid).cpu_times()[:2]))  # its own, as user and as system
    except psutil.Error:  # it has just ended
        return 0.0


@contextlib.contextmanager
def _process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python that uses the `course_utils` beside the notebook if there is one, as the notebook itself does."""
    ours = str(Path(__file__).parent.parent.parent)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), ours]))
    process = subprocess.Popen(
        [sys.executable, "-m", "course_utils.terminal.cell_runner"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg", GRADING: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _lines(process: subprocess.Popen[str], steps: str) -> queue.Queue[Mapping[str, Any] | None]:
    """What the process says, line by line; None when it is gone."""
    said: queue.Queue[Mapping[str, Any] | None] = queue.Queue()

    def listen() -> None:
        assert process.stdin and process.stdout
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(steps)
            process.stdin.close()
            for line in process.stdout:
                said.put(json.loads(line))
        said.put(None)

    threading.Thread(target=listen, daemon=True).start()
    return said


def _no_start(process: subprocess.Popen[str], folder: Path) -> str:
    process.kill()
    told = (process.stderr.read() if process.stderr else "").strip().splitlines()[-1:]
    return (
        f"The notebook could not be run in {folder.resolve()}: {''.join(told) or 'Python did not start'}. "
        "`course doctor` tells whether everything is installed."
    )
