"""Grade a single file, for scripts and other tools."""

from __future__ import annotations

from pathlib import Path

from autograder.box.sandbox import pick
from autograder.errors import BadInput
from autograder.grading.collect import collect
from autograder.grading.outputs import report_of
from autograder.grading.task import Task, grade_task, suite_digest
from autograder.judge.results import Report
from autograder.judge.tools import tools


def grade_one(homework: str, path: Path, sandbox: str = "auto", seed: int = 0) -> Report:
    """The report on one submission; raises `BadInput` where there is no single one."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Give one notebook, or use `autograder grade`.")
    (entry,) = collect(path, homework)
    task = Task(
        homework,
        entry.student,
        entry.path,
        entry.content or b"",
        entry.suffix,
        suite_digest(homework),
        seed,
        pick(sandbox),
        checkpoints=entry.files_for(homework),
        notes=entry.notes,
    )
    return report_of(tools(homework)[0], grade_task(task))
