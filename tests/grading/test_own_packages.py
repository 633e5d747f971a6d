"""A second course with a package for its students and a kit for its suites: shipped, boxed and kept as it should be."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.new_course import EXAMPLE

HOMEWORK = "hw1_kmeans"
TOOLS = '''\
"""What notebooks and checks share."""

import numpy as np


def distances(points, centers):
    """Squared distances: [n, d], [k, d] -> [n, k]."""
    return ((points[:, None] - centers) ** 2).sum(-1)


def nearest(points, centers):
    """The nearest centers by our own hand."""
    return np.argmin(distances(points, centers), axis=1)
'''
KIT = '''\
"""Runs beside the student's code, for the hidden suite."""


def calls_of(assign, points, centers):
    """How often `assign` is called, and with how many points."""
    seen = []

    def watched(points, centers):
        seen.append(len(points))
        return assign(points, centers)

    watched(points, centers)
    return seen
'''
HIDDEN = '''

def test_beside(assign, in_box, rng):
    """It is called once, with all points."""
    import kmeans_kit
    from suites.sizes import SIZE

    points, centers = rng.normal(size=(SIZE, 2)), rng.normal(size=(3, 2))
    same(in_box(kmeans_kit.calls_of, assign, points, centers), [SIZE], "the calls")


def test_tools(assign, in_box, rng):
    """Our own tool agrees."""
    from kmeans_tools import nearest

    points, centers = rng.normal(size=(9, 2)), rng.normal(size=(3, 2))
    same(assign(points, centers), in_box(nearest, points, centers), "the labels", dtype=False)
'''
RIGHT = "def assign(points, centers):\n    return kmeans_tools.distances(points, centers).argmin(1)\n"
CLASS = {
    "honest": RIGHT,
    "patches": "import kmeans_kit\nkmeans_kit.calls_of = lambda *_: [7]\n"
    "kmeans_tools.nearest = lambda points, centers: np.zeros(9)\n"
    "def assign(points, centers):\n    return np.zeros(len(points), dtype=int)\n",
    "looks": "import os\nassert not [place for place in {places!r} if os.path.exists(place)]\n" + RIGHT,
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "course"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("assignments", "build"))
    (folder / "kmeans_tools").mkdir()
    (folder / "kmeans_tools" / "__init__.py").write_text(TOOLS)
    (folder / "kmeans_kit.py").write_text(KIT)
    (folder / "suites" / "sizes.py").write_text("SIZE = 12\n")
    with open(folder / "course.toml", "a") as file:
        file.write('packages = ["kmeans_tools"]\nkits = ["kmeans_kit"]\n')
    source = folder / "solutions" / f"{HOMEWORK}.py"
    source.write_text(source.read_text().replace("import numpy", "import kmeans_tools\nimport numpy", 1))
    public, hidden = (folder / "suites" / HOMEWORK / kind / "test_q1_1.py" for kind in ("public", "hidden"))
    public.write_text(public.read_text() + "\n\nfrom kmeans_tools import distances  # noqa: E402, F401\n")
    hidden.write_text(hidden.read_text() + HIDDEN)
    (folder / "class").mkdir()
    places = [str(folder / place) for place in ("suites", "solutions", "course.toml", f"suites/{HOMEWORK}")]
    for student, code in CLASS.items():
        cell = code.replace("{places!r}", repr(places))
        (folder / "class" / f"{student}.py").write_text(f'# %% question="q1_1"\nimport kmeans_tools\n{cell}')
    commands = ["build", f"release {HOMEWORK}", f"grade class --assignment {HOMEWORK} --out results --jobs 1"]
    program = "import json, sys\nfrom autograder.cli import main\n"
    program += "for words in json.loads(sys.argv[1]):\n    code = main(words)\n    code and sys.exit(code)\n"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, json.dumps([command.split() for command in commands])],
        cwd=folder, text=True, capture_output=True,
        env={name: value for name, value in os.environ.items() if name != "AUTOGRADER_COURSE"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def cases(course: Path, student: str) -> dict[str, str]:
    told = json.loads((course / "results" / "feedback" / f"{student}.json").read_text())
    first = next(question for question in told["questions"] if question["question"] == "q1_1")
    return {case["sentence"]: case["verdict"] for case in first["cases"]}


def test_suites_run_functions_of_the_kit_and_the_package_in_the_box(course: Path) -> None:
    with open(course / "results" / "grades.csv", newline="") as file:
        scores = {row["student_id"]: float(row["q1_1"]) for row in csv.DictReader(file)}
    assert scores["honest"] == 50 and set(cases(course, "honest").values()) == {"passed"}


def test_a_notebook_that_assigns_to_them_changes_nothing(course: Path) -> None:
    told = cases(course, "patches")
    assert told["It is called once, with all points."] == "passed", "the kit counts as we wrote it"
    assert told["Our own tool agrees."] == "failed", "the tool says what we wrote"


def test_the_box_shows_nothing_else_of_the_course(course: Path) -> None:
    assert set(cases(course, "looks").values()) == {"passed"}


def test_the_package_is_shipped_and_the_kit_is_not(course: Path) -> None:
    with zipfile.ZipFile(course / "build" / "release" / f"{HOMEWORK}.zip") as archive:
        names = archive.namelist()
        assert '"kmeans_tools*"' in archive.read(f"{HOMEWORK}/pyproject.toml").decode()
    assert f"{HOMEWORK}/kmeans_tools/__init__.py" in names
    assert not any("kmeans_kit" in name or "sizes" in name for name in names)
