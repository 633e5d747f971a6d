"""Grade the same hw1 submissions with the same checks by this autograder, by nbgrader and by otter, in one run.

    python benchmarks/grading.py [--ours 200] [--nbgrader 8] [--otter 4] [--json]

The checks are hw1's public ones, because those run in all three: in our judge, in nbgrader's test cells, in otter's
test files. Cells that plot or train are taken out for all, since ours skips them anyway. Then our hidden suite, for
scale.
With --json the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from autograder.builder.generated import student_files
from autograder.builder.notebooks import source_notebook
from autograder.example_class import write_class
from autograder.homework import Homework, read_homework

BIN = Path(sys.executable).parent
HOMEWORK = "hw1_attention"
STUDENTS = ("all-right", "right-another-way", "first-half", "wrong-axis", "no-scale", "loses-rows", "untouched")
SKIPPED = {"plot", "training"}


def main() -> None:
    """Measure, print a table, and with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ours", type=int, default=200, help="submissions for this autograder")
    parser.add_argument("--nbgrader", type=int, default=8)
    parser.add_argument("--otter", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=20, help="submissions for our hidden suite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    homework = read_homework(HOMEWORK)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        place = Path(folder)
        models = submissions(homework, place / "class")
        seconds = {
            "ours": ours(place / "ours", models, options.ours, "--public-only"),
            "nbgrader": nbgrader(homework, place / "nbgrader", models, options.nbgrader),
            "otter": otter(homework, place / "otter", models, options.otter),
            "ours, hidden suite": ours(place / "hidden", models, options.hidden),
        }
    for name, value in seconds.items():
        print(f"{name:20}{value:8.3f} s per submission")
    times = {name: seconds[name] / seconds["ours"] for name in ("nbgrader", "otter")}
    print(f"throughput: {times['nbgrader']:.0f} times nbgrader's, {times['otter']:.0f} times otter's")
    if options.json:
        figures = {f"seconds_{name.replace(', ', '_').replace(' ', '_')}": value for name, value in seconds.items()}
        print(json.dumps({"times_nbgrader": times["nbgrader"], "times_otter": times["otter"], **figures}))


def submissions(homework: Homework, folder: Path) -> list[nbformat.NotebookNode]:
    """Submissions of the example class, good and bad, without what plots or trains."""
    write_class(homework, folder)
    notebooks = [nbformat.read(folder / f"{student}.ipynb", 4) for student in STUDENTS]
    for notebook in notebooks:
        notebook.cells = [cell for cell in notebook.cells if not SKIPPED & set(cell.metadata.get("tags", []))]
        notebook.cells = [cell for cell in notebook.cells if "check_all" not in cell.source]
        notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebooks


def spread(models: list[nbformat.NotebookNode], count: int) -> list[tuple[str, nbformat.NotebookNode]]:
    """So many students, the models in turn."""
    return [(f"s{number:04d}", models[number % len(models)]) for number in range(count)]


def timed(command: list[str], folder: Path) -> float:
    """Wall seconds of a command that must succeed."""
    start = time.perf_counter()
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


def ours(folder: Path, models: list[nbformat.NotebookNode], count: int, *flags: str) -> float:
    """`autograder grade`, start included."""
    (folder / "in").mkdir(parents=True)
    for student, notebook in spread(models, count):
        nbformat.write(notebook, folder / "in" / f"{student}.ipynb")
    command = [str(BIN / "autograder"), "grade", "in", "--assignment", HOMEWORK, "--out", "out", *flags]
    return timed(command, folder) / count


def nbgrader(homework: Homework, folder: Path, models: list[nbformat.NotebookNode], count: int) -> float:
    """`nbgrader autograde` with the public checks in the test cells, `generate_assignment` not counted."""
    source = source_notebook(homework)
    source.cells = [cell for cell in source.cells if not SKIPPED & set(cell.metadata.get("tags", []))]
    source.cells = [cell for cell in source.cells if "check_all" not in cell.source]
    for cell in source.cells:
        question = cell.metadata.get("nbgrader", {}).get("grade_id", "").removeprefix("test_")
        if cell.source.startswith("grader.check("):
            cell.source = in_a_cell(homework.public_file(question).read_text())
    (folder / "source" / HOMEWORK).mkdir(parents=True)
    nbformat.write(source, folder / "source" / HOMEWORK / f"{HOMEWORK}.ipynb")
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'benchmark'\nc.ExecutePreprocessor.timeout = 120\n"
    )
    timed([str(BIN / "nbgrader"), "generate_assignment", HOMEWORK], folder)
    for student, notebook in spread(models, count):
        place = folder / "submitted" / student / HOMEWORK
        place.mkdir(parents=True)
        nbformat.write(notebook, place / f"{HOMEWORK}.ipynb")
    seconds = timed([str(BIN / "nbgrader"), "autograde", HOMEWORK, "--create"], folder)
    graded = len(list((folder / "autograded").glob(f"*/{HOMEWORK}/*.ipynb")))
    if graded != count:
        raise SystemExit(f"nbgrader graded {graded} of {count} submissions")
    return seconds / count


def in_a_cell(checks: str) -> str:
    """A public test file as a test cell: its functions, then a call of each test."""
    calls = []
    for node in ast.parse(checks).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            arguments = [a.arg if a.arg != "rng" else "torch.Generator().manual_seed(0)" for a in node.args.args]
            calls.append(f"{node.name}({', '.join(arguments)})")
    return "\n".join([checks, *calls])


def otter(homework: Homework, folder: Path, models: list[nbformat.NotebookNode], count: int) -> float:
    """`otter run`, one submission after the other, with the public test files."""
    tests = folder / "tests"
    tests.mkdir(parents=True)
    for path, content in student_files(homework).items():
        if path.parent.name == "tests":
            (tests / path.name).write_bytes(content)
    timed([str(BIN / "otter"), "generate", "-t", "tests", "-o", "autograder.zip", "--no-environment"], folder)
    archive = folder / "autograder.zip"
    total = 0.0
    for student_id, notebook in spread(models, count):
        place = folder / student_id
        place.mkdir()
        nbformat.write(notebook, place / f"{HOMEWORK}.ipynb")
        shutil.copy(archive, place / "autograder.zip")
        total += timed([str(BIN / "otter"), "run", f"{HOMEWORK}.ipynb", "-a", "autograder.zip"], place)
    return total / count


if __name__ == "__main__":
    main()
