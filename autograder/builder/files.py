"""All files that one homework's source becomes."""

from __future__ import annotations

import json

import nbformat

from autograder.builder.checks import public_test_file
from autograder.builder.notebooks import solution_notebook, source_notebook, student_notebook
from autograder.builder.write import Files
from autograder.homework import Homework
from autograder.judge.diagnosis import Diagnostician
from autograder.places import ASSIGNMENTS, BUILD, LOCK


def student_files(homework: Homework) -> Files:
    """What stands in `assignments/<name>/`: the notebook and its public checks."""
    folder = ASSIGNMENTS / homework.name
    diagnostician = Diagnostician(homework)
    files: Files = {folder / f"{homework.name}.ipynb": _bytes(student_notebook(homework))}
    for question in homework.questions:
        path = folder / "tests" / f"{question.id}.py"
        files[path] = public_test_file(homework, question, diagnostician, path).encode()
    return files


def staff_files(homework: Homework, student: Files) -> Files:
    """What stands in `build/<name>/`: the solution notebook, nbgrader's source, the inputs of otter's zip."""
    folder, notebook = BUILD / homework.name, f"{homework.name}.ipynb"
    otter = folder / "otter"
    config = {
        "assignment_name": homework.name,
        "points_possible": sum(question.points for question in homework.questions),
        "show_hidden": False,
        "zips": True,
    }
    return {
        folder / "solution" / notebook: _bytes(solution_notebook(homework)),
        folder / "nbgrader" / "source" / homework.name / notebook: _bytes(source_notebook(homework)),
        otter / "otter_config.json": json.dumps(config, indent=2).encode() + b"\n",
        otter / "requirements.txt": LOCK.read_bytes(),
        **{otter / "tests" / path.name: text for path, text in student.items() if path.parent.name == "tests"},
    }


def _bytes(notebook: nbformat.NotebookNode) -> bytes:
    nbformat.validate(notebook)
    return (nbformat.writes(notebook) + "\n").encode()
