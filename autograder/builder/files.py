"""All files that one homework's source becomes."""

from __future__ import annotations

import nbformat

from autograder.builder.checks import public_test_file
from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.builder.write import Files
from autograder.homework import Homework
from autograder.judge.diagnosis import Diagnostician
from autograder.places import ASSIGNMENTS, BUILD


def student_files(homework: Homework, anew: bool = False) -> Files:
    """What stands in `assignments/<name>/`: the notebook and its public checks.

    Fingerprints are kept where nothing that they are made from has changed, unless they are wanted `anew`.
    """
    folder = ASSIGNMENTS / homework.name
    diagnostician = Diagnostician(homework, None if anew else folder)
    files: Files = {folder / f"{homework.name}.ipynb": _bytes(student_notebook(homework))}
    for question in homework.questions:
        path = folder / "tests" / f"{question.id}.py"
        files[path] = public_test_file(homework, question, diagnostician, path).encode()
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
    return (nbformat.writes(notebook) + "\n").encode()
