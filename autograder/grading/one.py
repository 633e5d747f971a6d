"""Grade a single file, for scripts and other tools."""

from __future__ import annotations

from pathlib import Path

from autograder.box.sandbox import pick
from autograder.errors import BadInput
from autograder.grading.collect import collect
from autograder.grading.outputs import report_of
from autograder.grading.seeds import draw
from autograder.grading.task import grade_task, task_of, unreadable
from autograder.judge.results import Report
from autograder.judge.tools import tools


def grade_one(homework: str, path: Path, sandbox: str = "auto", seed: int | None = None) -> Report:
    """The report on one submission, a new seed drawn unless one is given; raises `BadInput` for anything else."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Give one notebook, or use `autograder grade`.")
    (entry,) = collect(path, homework)
    task = task_of(entry, tools(homework)[0], pick(sandbox), draw() if seed is None else seed)
    found = grade_task(task) if entry.content is not None else unreadable(task, entry.problem, entry.status)
    return report_of(tools(homework)[0], found)
