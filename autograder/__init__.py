"""Build, verify and grade the course's homeworks; staff only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.explain.fast_imports import without_slow_imports

with without_slow_imports():
    import jsonschema as _  # noqa: F401  every notebook library loads it

if TYPE_CHECKING:
    from autograder.judge.results import Report

__all__ = ["grade"]


def grade(homework: str, path: str | Path, *, sandbox: str = "auto", seed: int | None = None) -> Report:
    """Grade one notebook or percent file in a box, without a course folder, journal or gradebook.

    The inputs of the cases are drawn anew each time, unless a seed is given.
    """
    from autograder.grading.one import grade_one

    return grade_one(homework, Path(path), sandbox, seed)
