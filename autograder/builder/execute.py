"""Run a solution notebook in a real kernel, as students run theirs, and tell every cell that is not as it should be."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograder.builder.generated import student_files
from autograder.builder.notebooks import solution_notebook
from autograder.builder.page import solution_page
from autograder.homework import Homework
from autograder.judge.verdicts import Infrastructure
from autograder.places import ASSIGNMENTS
from autograder.write import write
from course_utils.explain.check_report import LABELS
from course_utils.notebook.grader import GRADING

NOT_GREEN = [f"[{label}]" for status, label in LABELS.items() if status != "passed"]
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")

KERNEL_SECONDS = 180  # for a kernel to start on a busy machine

Step = Callable[[str], None]  # is told of every cell that is done


@dataclass(frozen=True)
class Failure:
    """A cell that raised, took too long, or whose check is not green."""

    cell: int  # counted from 1, as in the notebook
    name: str  # its grade id, where it has one
    error: str

    def __str__(self) -> str:
        return f"cell {self.cell}{f' ({self.name})' if self.name else ''}: {self.error}"


@dataclass(frozen=True)
class Executed:
    """A solution notebook after its run: where it stands, with outputs, and what went wrong."""

    homework: str
    notebook: Path
    page: Path
    cells: int
    checks: int
    seconds: float
    failures: tuple[Failure, ...]


def execute_solution(homework: Homework, out: Path, fast: bool, cell_seconds: float, step: Step) -> Executed:
    """Run the notebook cell by cell and write it as `<out>/<name>.ipynb` and `.html`, whatever its cells did."""
    notebook = solution_notebook(homework)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="solution-") as folder:
        _lay_out_tests(homework, Path(folder))
        try:
            failures = _run(notebook, folder, fast, cell_seconds, step)
        except RuntimeError as error:
            raise Infrastructure(f"No notebook kernel can be started ({error}). Try `course doctor`.") from None
    seconds = time.perf_counter() - start
    notebook_path, page_path = out / f"{homework.name}.ipynb", out / f"{homework.name}.html"
    files = {notebook_path: (nbformat.writes(notebook) + "\n").encode(), page_path: solution_page(notebook).encode()}
    write(files, [])
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return Executed(
        homework.name, notebook_path, page_path, len(code), sum(map(_is_check, code)), seconds, tuple(failures)
    )


def code_cells(homework: Homework) -> int:
    """How many cells there are to run."""
    return sum(cell.cell_type == "code" for cell in solution_notebook(homework).cells)


def _lay_out_tests(homework: Homework, folder: Path) -> None:
    """The public checks beside the notebook, as they follow from the sources now."""
    assignment = ASSIGNMENTS / homework.name
    for path, content in student_files(homework).items():
        if path.parent.name == "tests":
            target = folder / path.relative_to(assignment)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)


def _run(notebook: NotebookNode, folder: str, fast: bool, cell_seconds: float, step: Step) -> list[Failure]:
    environment = os.environ | ({"COURSE_FAST": "1"} if fast else {})
    environment.pop(GRADING, None)  # set in this process, where checks have nothing to do
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        startup_timeout=KERNEL_SECONDS,
        timeout=cell_seconds,
        allow_errors=True,  # the cells below may still run, and a TA wants to see them
        record_timing=False,
        resources={"metadata": {"path": folder}},
    )
    manager = client.create_kernel_manager()
    manager.transport, manager.ip = "ipc", f"{folder}/kernel"  # not through the network, where others could listen
    failures = []
    with client.setup_kernel(env=environment):
        for position, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            name, error = cell.metadata.get("nbgrader", {}).get("grade_id", ""), ""
            try:
                client.execute_cell(cell, position)
            except CellTimeoutError:
                error = f"was still running after {cell_seconds:g} seconds, and nothing below it was run"
            except DeadKernelError:
                error = "the kernel died here, and nothing below it was run"
            if told := error or _error(cell):
                failures.append(Failure(position + 1, name, told))
            if error:
                break
            step(name or f"cell {position + 1}")
    return failures


def _error(cell: NotebookNode) -> str:
    """What is wrong with a cell after its run; "" where nothing is."""
    for output in cell.outputs:
        if output.output_type == "error":
            return COLOUR_CODES.sub("", f"{output.ename}: {output.evalue}")
    if not _is_check(cell):
        return ""
    text = "\n".join(str(output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
    if f"[{LABELS['passed']}]" in text and not any(label in text for label in NOT_GREEN):
        return ""
    return f"the check is not green: {text or 'it says nothing'}"


def _is_check(cell: NotebookNode) -> bool:
    return bool(cell.source.startswith("grader.check("))
