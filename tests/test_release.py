"""The release as a student meets it: unpacked in an empty folder, run in a real Jupyter kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.builder.notebooks import student_cells
from autograder.builder.release import release_files
from autograder.homework import homework_names, read_homework
from course_utils.checks import GRADING


@pytest.fixture(params=homework_names())
def unpacked(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of one homework's release; a student's kernel does not know that a judge runs in this process."""
    monkeypatch.delenv(GRADING, raising=False)
    for name, content in release_files(request.param).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / request.param


def run(notebook: nbformat.NotebookNode, folder: Path) -> dict[str, str]:
    """Run every cell in a kernel in that folder; {grade id or position: what it shows as text}."""
    where = nbformat.v4.new_code_cell("import course_utils; print(course_utils.__file__)")
    notebook.cells.insert(0, where)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    shown = {}
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.outputs]
            shown[cell.metadata.get("nbgrader", {}).get("grade_id", str(position))] = "\n".join(map(str, texts))
    assert Path(shown["0"].strip()).is_relative_to(folder), "the kernel must use the release's own course_utils"
    return shown


def test_untouched_it_runs_to_the_end_and_every_check_says_not_answered(unpacked: Path) -> None:
    shown = run(nbformat.read(unpacked / f"{unpacked.name}.ipynb", 4), unpacked)
    for question in read_homework(unpacked.name).questions:
        assert shown[f"test_{question.id}"] == f"{question.id}: not answered yet"
    assert sum("appears once" in text for text in shown.values()) >= len(read_homework(unpacked.name).questions) // 2


def test_with_the_reference_s_answers_every_public_check_is_ok(unpacked: Path) -> None:
    homework = read_homework(unpacked.name)
    notebook = nbformat.read(unpacked / f"{unpacked.name}.ipynb", 4)
    notebook.cells = student_cells(homework, solved=True)
    shown = run(notebook, unpacked)
    for question in homework.questions:
        assert "checks ok" in shown[f"test_{question.id}"] and "all" in shown[f"test_{question.id}"]
    assert not any("appears once" in text for text in shown.values())
