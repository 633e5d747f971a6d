"""A tiny course with a free-text question and a class, and the real tools to grade it with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
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

# Programs that take a list of [folder, arguments]: several commands in one process, for importing takes seconds.
AUTOGRADER = """
import json, os, sys
from autograder.cli import main
for folder, arguments in json.loads(sys.argv[1]):
    os.chdir(folder)
    code = main(arguments)
    if code:
        sys.exit(code)
"""
NBGRADER = """
import autograder  # a quick jsonschema
import contextlib, json, os, sys
from jupyter_core.application import NoStart
from nbgrader.apps import NbGraderApp
for folder, arguments in json.loads(sys.argv[1]):
    os.chdir(folder)
    NbGraderApp.clear_instance()
    app = NbGraderApp.instance()
    app.initialize(arguments)
    with contextlib.suppress(NoStart):  # raised when the subcommand is done
        app.start()
"""
Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Course:
    """A course folder, and the programs of this environment to work on it with."""

    path: Path

    def run(self, *command: str, cwd: Path | None = None, fails: bool = False, **more: str) -> Done:
        """Run a program; it must succeed, or fail."""
        environment = os.environ | {"AUTOGRADER_COURSE": str(self.path)} | more
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        done = subprocess.run(command, env=environment, cwd=cwd or self.path, text=True, capture_output=True)
        assert (done.returncode != 0) == fails, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done

    def autograder(self, *commands: str, fails: bool = False) -> Done:
        """Run `autograder` with the arguments of each command, in the course's folder."""
        return self._all(AUTOGRADER, [(self.path, command) for command in commands], fails)

    def nbgrader(self, *commands: str | tuple[Path, str]) -> Done:
        """Run nbgrader's own commands, in the folder `school` or the one given with a command."""
        return self._all(NBGRADER, [(self.path / "school", c) if isinstance(c, str) else c for c in commands], False)

    def _all(self, program: str, commands: list[tuple[Path, str]], fails: bool) -> Done:
        told = json.dumps([[str(folder), command.split()] for folder, command in commands])
        return self.run(sys.executable, "-P", "-c", program, told, fails=fails)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, write_tiny: Callable[[Path], Path]) -> Path:
    """The tiny course with its class in `class/`, built, and with what each front end is given."""
    folder = write_tiny(tmp_path_factory.mktemp("built"))
    path = folder / "solutions" / f"{HOMEWORK}.py"
    path.write_text(path.read_text().replace("points=40", "points=37") + EXPLAIN)
    homework = _read(folder)
    (folder / "class").mkdir()
    for student, changes in CLASS.items():
        (folder / "class" / f"{student}.ipynb").write_text(_notebook(homework, changes, folder / "marker"))
    Course(folder).autograder(
        "build",
        f"nbgrader init school {HOMEWORK}",
        f"otter out {HOMEWORK}",
        f"gradescope {HOMEWORK} --out out --attempts 3",
    )
    return folder


@pytest.fixture(scope="session")
def new_course(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Course]:
    """Makes copies of the built course."""
    return lambda: Course(shutil.copytree(built, tmp_path_factory.mktemp("course") / "copy"))


@pytest.fixture
def course(new_course: Callable[[], Course]) -> Course:
    """A copy of the built course, to do anything with."""
    return new_course()


@pytest.fixture(scope="session")
def marker(built: Path) -> Path:
    """What a hostile answer of the class tries to write."""
    return built / "marker"


@pytest.fixture(scope="session")
def homework(built: Path) -> Homework:
    """The tiny homework, as its authors wrote it."""
    return _read(built)


@pytest.fixture(scope="session")
def expected() -> dict[str, dict[str, float]]:
    """What each student of the class earns from the judge, by question."""
    return SCORES


@pytest.fixture(scope="session")
def graded(
    new_course: Callable[[], Course], expected: dict[str, dict[str, float]], tmp_path_factory: pytest.TempPathFactory
) -> Course:
    """A course after the whole way: one student through the exchange, the others through a download of Canvas'."""
    course = new_course()
    exchange, home = tmp_path_factory.mktemp("exchange"), tmp_path_factory.mktemp("home")
    exchange.chmod(0o777)
    archive = course.path / "school" / "downloaded" / HOMEWORK / "archive"
    archive.mkdir(parents=True)
    for number, student in enumerate(expected):  # as Canvas names them
        name = f"{student}_{'LATE_' * (number % 2)}{number}_77_{HOMEWORK}{'-1' * (number % 2)}.ipynb"
        shutil.copy(course.path / "class" / f"{student}.ipynb", archive / name)
    options = f"--Exchange.root={exchange} --CourseDirectory.course_id=school"
    course.nbgrader(
        f"generate_assignment {HOMEWORK} --force",
        f"release_assignment {HOMEWORK} {options}",
        (home, f"fetch_assignment {HOMEWORK} {options}"),
    )
    fetched = home / HOMEWORK
    assert (fetched / "course_utils" / "checking" / "compare.py").is_file() and (fetched / "tests").is_dir()
    shutil.copy(course.path / "class" / "ada.ipynb", home / HOMEWORK / f"{HOMEWORK}.ipynb")
    course.nbgrader(
        (home, f"submit {HOMEWORK} {options}"),
        f"collect {HOMEWORK} {options}",
        f"zip_collect {HOMEWORK}",
        f"autograde {HOMEWORK}",
        f"generate_feedback {HOMEWORK}",
        "export",
    )
    return course


@pytest.fixture(scope="session")
def ids(expected: dict[str, dict[str, float]]) -> dict[str, str]:
    """What Canvas' numbers make of the students' names."""
    return {student: str(number) for number, student in enumerate(expected)}


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
