"""A tiny homework for tests that need one to break."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tensors are small, and boxes want the other core
DRIVER = Path(__file__).parent / "driver.py"

SOURCE = '''\
# %% [markdown]
# # A tiny homework

# %%
import torch

# %% [markdown] question="q9_1"
# ## Twice
# Return twice the number.

# %% question="q9_1" points=60 minutes=5 difficulty=1
def twice(x):
    """Twice x."""
    # BEGIN SOLUTION
    return 2 * x
    # END SOLUTION

# %% [markdown] help="q9_1"
# symptom: it is too small
#
# hint: add
#
# pseudo-code: add the number to itself

# %% [markdown] question="q9_2"
# ## Half
# Return half the number.

# %% question="q9_2" points=40 minutes=5 difficulty=1
def half(x):
    """Half of x."""
    # BEGIN SOLUTION
    return x / 2
    # END SOLUTION

# %% [markdown] help="q9_2"
# symptom: it is too large
#
# hint: divide
#
# pseudo-code: divide by two
'''

CHECK = '''\
from course_utils.checking.compare import same


def test_{name}_of_four({name}):
    """{name}(4) is {value}."""
    same({name}(4.0), {value}, "the result")


def probe_{name}({name}):
    return {name}(3.0)
'''

HIDDEN = '''\
from course_utils.checking.compare import same


def test_{name}_of_anything({name}, reference, rng):
    """{name} works for any number."""
    import torch

    x = torch.randn(3, generator=rng, dtype=torch.float64)
    same({name}(x), reference.{name}(x), "the result")
'''


def _catalogue(name: str, bodies: list[str]) -> str:
    return "\n".join(
        f'# %% case-{i}\n"""Not {body}."""\ndef {name}(x):\n    return {body}\n' for i, body in enumerate(bodies)
    )


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A course folder with one tiny homework and its suites, all in order."""
    return _write_tiny(tmp_path)


@pytest.fixture(scope="session")
def write_tiny() -> Callable[[Path], Path]:
    """Writes such a course into an empty folder, for fixtures that several tests share."""
    return _write_tiny


def _write_tiny(folder: Path) -> Path:
    suite = folder / "autograder" / "suites" / "hw9_tiny"
    (folder / "solutions").mkdir()
    (folder / "solutions" / "hw9_tiny.py").write_text(SOURCE)
    for part in ("public", "hidden", "mistakes", "variants"):
        (suite / part).mkdir(parents=True)
    for question, name, value in (("q9_1", "twice", 8.0), ("q9_2", "half", 2.0)):
        (suite / "public" / f"test_{question}.py").write_text("\n" + CHECK.format(name=name, value=value))
        (suite / "hidden" / f"test_{question}.py").write_text("\n" + HIDDEN.format(name=name))
        wrong = ["x * 3", "x + 2", "x - 1", "-x"]
        right = ["x + x", "2.0 * x", "x * 2"] if name == "twice" else ["0.5 * x", "x * 0.5", "x - x / 2"]
        (suite / "mistakes" / f"{question}.py").write_text(_catalogue(name, wrong))
        (suite / "variants" / f"{question}.py").write_text(_catalogue(name, right))
    return folder


@dataclass(frozen=True)
class Finished:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


class Driver:
    """Runs commands as processes of their own that have their imports behind them."""

    def __init__(self) -> None:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(DRIVER)], env=os.environ | {"PATH": programs}, text=True, **options
        )

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Finished:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"argv": argv, "cwd": str(cwd), "env": env}) + "\n")
        self._process.stdin.flush()
        return Finished(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # with whatever command an interrupted test has left
        self._process.communicate()


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture(scope="session")
def commands(driver: Driver) -> Callable[..., Callable[..., Finished]]:
    """`run = commands(course)`, then `run("autograder", "grade", ...)`: many commands, imports paid once."""

    def of(course: Path, **environment: str) -> Callable[..., Finished]:
        told = {"AUTOGRADER_COURSE": str(course), **environment}
        return lambda *argv, cwd=course: driver.run(argv, cwd, told)

    return of


@pytest.fixture(scope="session")
def run_release(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Unpack a homework's release and run its notebook, stubs or reference, in a real kernel: each once a session."""
    import nbformat
    from nbclient import NotebookClient

    from autograder.builder.notebooks import student_cells
    from autograder.builder.release import release_files
    from autograder.homework import read_homework
    from course_utils.notebook.grader import GRADING

    @functools.cache
    def run(name: str, solved: bool) -> Any:
        root = tmp_path_factory.mktemp("release")
        for path, content in release_files(name).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        folder = root / name
        notebook = nbformat.read(folder / f"{name}.ipynb", 4)
        if solved:
            notebook.cells = student_cells(read_homework(name), solved=True)
        notebook.cells.insert(0, nbformat.v4.new_code_cell("import course_utils; print(course_utils.__file__)"))
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(GRADING, raising=False)  # a student's kernel does not know that a judge runs in this process
            patch.setenv("COURSE_FAST", "1")  # training runs of seconds: that a notebook runs is the question here
            NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
        where = Path(notebook.cells.pop(0).outputs[0].text.strip())
        assert where.is_relative_to(folder), "the kernel must use the release's own course_utils"
        return notebook

    return run
