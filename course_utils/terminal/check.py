"""Run a student's notebook and its public checks from the terminal, in a Python of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.explain.check_report import CheckReport
from course_utils.explain.outcomes import CheckOutcome
from course_utils.notebook.bars import GRADING
from course_utils.terminal.find_work import Work
from course_utils.terminal.notebook_file import CHECK, Cell, Notebook
from course_utils.terminal.originals import SKIPPED_TAGS, Original
from course_utils.terminal.refusals import Refusal

LIMIT = 120.0  # seconds for one cell, or for the checks of one question
FIRST = 120.0  # seconds more for Python itself to start: a cold disk takes its time over torch


@dataclass
class Checked:
    """What came of a notebook's run: the report of each question that was checked, and the cells that failed."""

    reports: dict[str, CheckReport] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)  # cell's position -> what it raised


def run_checks(work: Work, questions: list[str], limit: float = LIMIT) -> Checked:
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
        stuck, why = _run(steps, work.folder, limit, checked)
        if stuck is None:
            break
        if isinstance(stuck, int):
            checked.faults[stuck] = why
        else:
            checked.reports[stuck] = CheckReport(stuck, [CheckOutcome("error", "The checks run to their end.", why)])
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


def _run(steps: list[dict[str, Any]], folder: Path, limit: float, checked: Checked) -> tuple[int | str | None, str]:
    """Run the steps; the one at which Python stopped or which took too long, and why, or None at the end."""
    current: int | str | None = None
    with _process(folder) as process:
        lines = _lines(process, json.dumps(steps))
        while True:
            try:
                line = lines.get(timeout=limit + (FIRST if current is None else 0))
            except queue.Empty:
                return current, f"took longer than {limit:g} seconds and was stopped"
            if line is None:
                if current is None:
                    raise Refusal(_no_start(process, folder))
                return current, f"Python itself stopped here (exit code {process.wait()})"
            if "begin" in line:
                current = line["begin"]
            elif "cell" in line and line["error"]:
                checked.faults[line["cell"]] = line["error"]
            elif "question" in line:
                outcomes = [CheckOutcome(**outcome) for outcome in line["outcomes"]]
                checked.reports[line["question"]] = CheckReport(line["question"], outcomes, line["topics"])
            elif "end" in line:
                return None, ""


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
