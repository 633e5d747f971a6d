"""A tiny course with a free-text question and a class, and the real tools to grade it with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from autograder.builder.notebooks import student_cells
from autograder.homework import Homework, read_homework

HOMEWORK = "hw9_tiny"
EXPLAIN = """
# %% [markdown] explain="q9_3" points=3 minutes=8 difficulty=2
# ## 9.3 In your own words: why twice?
# Say why, in two sentences.
#
# BEGIN SOLUTION
# Because two halves make a whole.
#
# **Rubric.** 3 points: says so.
# END SOLUTION
"""
# What each student does to a solved notebook; {marker} is a file that must never appear.
CLASS: dict[str, dict[str, str]] = {
    "ada": {},
    "ben": {"q9_2": "def half(x):\n    return x + 2", "q9_3": "<script>alert(1)</script>Two halves."},
    "cat": {"q9_1": "import os\nopen('{marker}', 'w').write('ran')\nos._exit(0)"},
    "dan": {"q9_1": "import warnings\nwarnings.warn('loud')\ndef twice(x):\n    return x + x"},
    "eve": {"no ids": ""},
    "fay": {"truncated": ""},
}
SCORES: dict[str, dict[str, float]] = {
    "ada": {"q9_1": 60, "q9_2": 37},
    "ben": {"q9_1": 60, "q9_2": 0},
    "cat": {"q9_1": 0, "q9_2": 37},
    "dan": {"q9_1": 60, "q9_2": 37},
    "eve": {"q9_1": 60, "q9_2": 37},
    "fay": {"q9_1": 0, "q9_2": 0},
}

Runs = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def course(tiny: Path) -> Path:
    """The tiny course, built, with its class in `class/<student>.ipynb`."""
    path = tiny / "solutions" / f"{HOMEWORK}.py"
    path.write_text(path.read_text().replace("points=40", "points=37") + EXPLAIN)
    homework = _read(tiny)
    (tiny / "class").mkdir()
    for student, changes in CLASS.items():
        (tiny / "class" / f"{student}.ipynb").write_text(_notebook(homework, changes, tiny / "marker"))
    return tiny


@pytest.fixture
def homework(course: Path) -> Homework:
    """The tiny homework, as its authors wrote it."""
    return _read(course)


@pytest.fixture
def expected() -> dict[str, dict[str, float]]:
    """What each student of the class earns from the judge, by question."""
    return SCORES


def _read(course: Path) -> Homework:
    return read_homework(HOMEWORK, course / "solutions", course / "autograder" / "suites")


def _notebook(homework: Homework, changes: dict[str, str], marker: Path) -> str:
    cells = student_cells(homework, solved=True)
    for cell in cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in changes:
            cell.source = changes[grade_id].replace("{marker}", str(marker))
        if "no ids" in changes:
            cell.metadata = {}
    text = nbformat.writes(nbformat.v4.new_notebook(cells=cells))
    return text[: len(text) // 2] if "truncated" in changes else text


@pytest.fixture
def run(course: Path) -> Runs:
    """Run a program of this environment in a folder, with the tiny course as its course; it must succeed."""

    def run(*command: str, cwd: Path = course, fails: bool = False, **more: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"AUTOGRADER_COURSE": str(course)} | more
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        done = subprocess.run(command, env=environment, cwd=cwd, text=True, capture_output=True)
        assert (done.returncode != 0) == fails, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done

    return run


@pytest.fixture
def autograder(run: Runs) -> Runs:
    """Run `autograder` with these arguments."""
    return lambda *arguments, **options: run(sys.executable, "-m", "autograder", *arguments, **options)


NBGRADER = """
import contextlib, json, sys
from jupyter_core.application import NoStart
from nbgrader.apps import NbGraderApp
for arguments in json.loads(sys.argv[1]):
    NbGraderApp.clear_instance()
    app = NbGraderApp.instance()
    app.initialize(arguments)
    with contextlib.suppress(NoStart):  # raised when the subcommand is done
        app.start()
"""


@pytest.fixture
def nbgrader(run: Runs) -> Runs:
    """Run nbgrader's own commands, one after the other in one process (its import takes seconds)."""
    return lambda *commands, **options: run(
        sys.executable, "-c", NBGRADER, json.dumps([command.split() for command in commands]), **options
    )
