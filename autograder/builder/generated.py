"""All files that one homework's source becomes."""

from __future__ import annotations

import json

import nbformat

from autograder.builder.checks import mistakes_file, public_test_file
from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.homework import Homework
from autograder.judge.diagnosis import Diagnostician
from autograder.places import ASSIGNMENTS, BUILD, THE_COURSE
from autograder.write import Files
from course_utils.explain.sealed_prints import FILE


def student_files(homework: Homework, anew: bool = False) -> Files:
    """What stands in `assignments/<name>/`: the notebook, its public checks and what is known of mistakes.

    Fingerprints are kept where nothing that they are made from has changed, unless they are wanted `anew`.
    """
    folder = ASSIGNMENTS / homework.name
    files: Files = {folder / f"{homework.name}.ipynb": _bytes(student_notebook(homework))}
    for question in homework.questions:
        if homework.public_file(question.id).is_file():  # a draft may have none yet
            text = public_test_file(homework, question, THE_COURSE.rng)
            files[folder / "tests" / f"{question.id}.py"] = text.encode()
    mistakes = folder / "tests" / FILE
    files[mistakes] = mistakes_file(homework, Diagnostician(homework, folder, anew), mistakes)
    return files


def staff_files(homework: Homework) -> Files:
    """What stands in `build/<name>/`: the solution notebook. `autograder nbgrader` and `otter` make theirs anew."""
    return {BUILD / homework.name / "solution" / f"{homework.name}.ipynb": _bytes(solution_notebook(homework))}


def as_built(homework: Homework) -> bool:
    """Whether the solution notebook on disk is the one that follows from the source, outputs aside."""
    ((path, content),) = staff_files(homework).items()
    return path.is_file() and _contents(path.read_bytes()) == _contents(content)


def _contents(notebook: bytes) -> list[tuple[str, str, object]]:
    cells = nbformat.reads(notebook.decode(), as_version=4).cells
    return [(cell.cell_type, cell.source, cell.metadata.get("nbgrader")) for cell in cells]


def _bytes(notebook: nbformat.NotebookNode) -> bytes:
    nbformat.validate(notebook)
    told = json.loads(nbformat.writes(notebook))
    lines = json.dumps(told, indent=0, ensure_ascii=False, separators=(",", ": "))  # indents would be a tenth of it
    return (lines + "\n").encode()
