"""Another course on the same engine: from `autograder new course` to grades in four tools, and to students.

No command is told which course it is: it is found from the folder, or from what the tools were given.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.new_course import EXAMPLE
from autograder.places import LOCK

HOMEWORK = "hw1_kmeans"
CHOSEN = ("over-points", "first-step-only")  # wrong, and half done; everybody is graded by `autograder grade`
Scores = dict[str, dict[str, float]]

# Several commands in one process, for importing takes seconds; a list of arguments each.
AUTOGRADER = """
import json, sys
from autograder.cli import main
for arguments in json.loads(sys.argv[1]):
    if code := main(arguments):
        sys.exit(code)
"""


def run(*command: str, cwd: Path, **more: str) -> str:
    """What a program of this environment prints; nobody has told it of a course."""
    environment = {name: value for name, value in os.environ.items() if name != "AUTOGRADER_COURSE"} | more
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(command, env=environment, cwd=cwd, text=True, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new course after everything that its README and the guides name, its class graded in boxes."""
    folder = tmp_path_factory.mktemp("second")
    said = run(sys.executable, "-P", "-m", "autograder", "new", "course", "my_course", cwd=folder)
    assert f"autograder release {HOMEWORK}" in said
    steps = ["build", "build --check", "verify --jobs 1", f"release {HOMEWORK}", f"example {HOMEWORK} class"]
    steps += [f"grade class/submissions --assignment {HOMEWORK} --out results --jobs 1", f"otter out {HOMEWORK}"]
    steps += [f"nbgrader init school {HOMEWORK}", f"gradescope {HOMEWORK} --out out"]
    told = json.dumps([step.split() for step in steps])
    said = run(sys.executable, "-P", "-c", AUTOGRADER, told, cwd=folder / "my_course")
    assert "Every mistake loses points and is named, every right variant keeps them all." in said
    return folder / "my_course"


@pytest.fixture(scope="module")
def graded(course: Path) -> Scores:
    with open(course / "results" / "grades.csv", newline="") as file:
        return {row["student_id"]: {q: float(row[q]) for q in ("q1_1", "q1_2")} for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def notebooks(course: Path) -> dict[str, Path]:
    """What the chosen students hand in."""
    found = {}
    for student in CHOSEN:
        with zipfile.ZipFile(course / "class" / "submissions" / f"{student}.zip") as archive:
            archive.extractall(course / "class" / student)
        found[student] = course / "class" / student / f"{HOMEWORK}.ipynb"
    return found


def test_the_class_is_graded_in_boxes(course: Path, graded: Scores) -> None:
    assert set(graded) == {"all-right", "another-way", "over-points", "changes-its-input", "first-step-only"}
    assert graded["all-right"] == graded["another-way"] == {"q1_1": 50, "q1_2": 50}
    assert graded["first-step-only"] == {"q1_1": 50, "q1_2": 0}
    assert graded["over-points"]["q1_1"] < 50 < graded["over-points"]["q1_1"] + graded["over-points"]["q1_2"]
    told = json.loads((course / "results" / "feedback" / "changes-its-input.json").read_text())
    second = next(question for question in told["questions"] if question["question"] == "q1_2")
    assert second["mistake"] == "in-place"
    assert any("changed its input `centers` in place" in case["message"] for case in second["cases"])


def test_nbgrader_gives_the_same(course: Path, graded: Scores, notebooks: dict[str, Path]) -> None:
    school = course / "school"
    for student, path in notebooks.items():
        (school / "submitted" / student / HOMEWORK).mkdir(parents=True)
        shutil.copy(path, school / "submitted" / student / HOMEWORK)
    run("nbgrader", "autograde", HOMEWORK, cwd=school)
    found: Scores = {}
    with Gradebook(f"sqlite:///{school}/gradebook.db") as book:
        for submission in book.notebook_submissions(HOMEWORK, HOMEWORK):
            scores = {grade.cell.name.removeprefix("test_"): grade.auto_score for grade in submission.grades}
            found[submission.student.id] = scores
    assert found == {student: graded[student] for student in CHOSEN}


def test_otter_gives_the_same(course: Path, graded: Scores, notebooks: dict[str, Path], tmp_path: Path) -> None:
    archive = course / "out" / HOMEWORK / "autograder.zip"
    run("otter", "run", str(notebooks["over-points"]), "-a", str(archive), "-o", ".", "--no-logo", cwd=tmp_path)
    tests = json.loads((tmp_path / "results.json").read_text())["tests"]
    assert {test["name"]: test["score"] for test in tests if "score" in test} == graded["over-points"]


def test_gradescope_gives_the_same(course: Path, graded: Scores, notebooks: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(course / "out" / f"{HOMEWORK}-gradescope.zip") as bundle:
        bundle.extractall(tmp_path / "source")
    inside = {path.relative_to(tmp_path / "source" / "course").parts[0] for path in tmp_path.rglob("course/*/*")}
    assert {"suites", "solutions", "assignments"} <= inside
    assert not (tmp_path / "source" / "course" / "autograder" / "suites").exists(), "no other course's suites"
    (tmp_path / "submission").mkdir()
    shutil.copy(notebooks["over-points"], tmp_path / "submission")
    shutil.copy(tmp_path / "source" / "run_autograder", tmp_path)
    run("bash", str(tmp_path / "run_autograder"), cwd=tmp_path, AUTOGRADER_PYTHON=sys.executable)
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert results["extra_data"]["questions"] == graded["over-points"]
    if os.geteuid() == 0:
        for place in ("suites", "solutions", "assignments"):
            assert (tmp_path / "source" / "course" / place).stat().st_mode & 0o777 == 0o700


# What a student has


@pytest.fixture(scope="module")
def student(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release, unpacked."""
    folder = tmp_path_factory.mktemp("student")
    with zipfile.ZipFile(course / "build" / "release" / f"{HOMEWORK}.zip") as archive:
        archive.extractall(folder)
    return folder / HOMEWORK


@pytest.fixture(scope="module")
def no_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no Python finds torch."""
    folder = tmp_path_factory.mktemp("blocker")
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    return {"PYTHONPATH": str(folder)}


def test_the_release_holds_what_the_homework_needs_and_pins_no_torch(student: Path) -> None:
    rooms = {path.name for path in (student / "course_utils").iterdir() if (path / "__init__.py").is_file()}
    assert rooms == {"checking", "explain", "notebook", "terminal"}
    own = {path.stem for path in (student / "course_utils" / "notebook").glob("*.py")}
    assert {"grader", "after"} <= own and not {"training", "checkpoints", "conventions", "device", "plots"} & own
    assert "torch" not in (student / "requirements.txt").read_text()
    assert "numpy==" in (student / "requirements.txt").read_text()
    assert "My course" in (student / "pyproject.toml").read_text()


def test_a_check_in_the_notebook_works_without_torch(student: Path, no_torch: dict[str, str]) -> None:
    program = (
        "import numpy as np\nfrom course_utils import Grader\n"
        f"grader = Grader('{HOMEWORK}')\nprint(grader.check('q1_1'))\n"
        "def assign(points, centers):\n    return np.abs(points[:, None] - centers).sum(-1).argmin(0)\n"
        "print(grader.check('q1_1'))\n"
        "def assign(points, centers):\n    return ((points[:, None] - centers) ** 2).sum(-1).argmin(0)\n"
        "print(grader.check('q1_1'))\n"
        "def assign(points, centers):\n    return ((points[:, None] - centers) ** 2).sum(-1).argmin(1)\n"
        "print(grader.check('q1_1'))\n"
        "import sys\nassert sys.modules['torch'] is None\n"
    )
    said = run(sys.executable, "-c", program, cwd=student, **no_torch)
    assert said.startswith("q1_1 (1.1 To the nearest centre): not answered yet\n")
    assert "The labels have shape [3], expected [10]" in said
    assert "Looks like over-points: Your minimum runs over the points" in said
    assert "q1_1 (1.1 To the nearest centre): all 3 checks ok" in said


def test_installed_it_checks_and_packs_without_torch(student: Path, no_torch: dict[str, str], tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "site"
    shutil.copytree(student, work)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    run(*install, "--target", str(home), ".", cwd=work)
    shutil.rmtree(work / "course_utils")  # what is installed must do
    notebook = nbformat.read(work / f"{HOMEWORK}.ipynb", 4)
    answers = {
        "q1_1": "def assign(points, centers):\n    return ((points[:, None] - centers) ** 2).sum(-1).argmin(-1)",
        "q1_2": "def update(points, labels, centers):\n    return centers * np.nan",
    }
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    nbformat.write(notebook, work / f"{HOMEWORK}.ipynb")
    path = {"PYTHONPATH": f"{no_torch['PYTHONPATH']}:{home}"}
    program = "import sys, course_utils; sys.argv[0] = 'course'; print(course_utils.__file__)\n"
    program += "from course_utils.terminal.main import main; main(sys.argv[1:])"
    course = [sys.executable, "-P", "-c", program]
    said = run(*course, "check", "hw1", cwd=work, **path)
    assert said.startswith(str(home)) and "q1_1" in said and "the centres with points have NaN" in said
    said = run(*course, "doctor", cwd=work, **path)
    assert "torch" not in said and "ok   packages" in said
    run(*course, "submit", "hw1", cwd=work, **path)
    with zipfile.ZipFile(work / f"{HOMEWORK}-submission.zip") as archive:
        assert f"{HOMEWORK}.ipynb" in "\n".join(archive.namelist())


def test_pins_and_imports_that_students_cannot_have_are_told(course: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(course, tmp_path / "copy", ignore=shutil.ignore_patterns("school", "class", "results"))
    text = (copy / "course.toml").read_text()

    def refused(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "autograder", *words], cwd=copy, text=True, capture_output=True,
            env={name: value for name, value in os.environ.items() if name != "AUTOGRADER_COURSE"},
        )  # fmt: skip
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr

    (copy / "course.toml").write_text(text.replace('"pytest"]', '"pytest", "nonesuch"]'))
    assert f"{LOCK} pins no nonesuch" in refused("release", HOMEWORK)
    (copy / "course.toml").write_text(text)
    source = copy / "solutions" / f"{HOMEWORK}.py"
    source.write_text(source.read_text().replace("import Grader, after", "import Grader, after, pick_device"))
    run(sys.executable, "-P", "-m", "autograder", "build", cwd=copy)
    assert "imports course_utils.notebook.device, which needs torch" in refused("release", HOMEWORK)
    public = copy / "suites" / HOMEWORK / "public" / "test_q1_1.py"
    public.write_text("import torch\n" + public.read_text())
    assert "imports `torch`, which students do not have. Use course_utils, math, numpy, pytest" in refused("build")


def test_the_example_in_the_repository_is_built() -> None:
    run(sys.executable, "-P", "-m", "autograder", "build", "--check", cwd=EXAMPLE)
