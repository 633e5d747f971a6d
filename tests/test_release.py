"""The release as a student meets it: unpacked in an empty folder, run in a real Jupyter kernel."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from nbformat import NotebookNode

from autograder.homework import homework_names, read_homework


def shown(notebook: NotebookNode) -> dict[str, str]:
    """{grade id or position: what the cell shows as text}."""
    found = {}
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.outputs]
            found[cell.metadata.get("nbgrader", {}).get("grade_id", str(position))] = "\n".join(map(str, texts))
    return found


@pytest.mark.parametrize("name", homework_names())
def test_untouched_it_runs_to_the_end_and_every_check_says_not_answered(
    name: str, run_release: Callable[..., NotebookNode]
) -> None:
    notebook = run_release(name, solved=False)
    told = shown(notebook)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    headings = {line.lstrip("# ") for text in texts for line in text.splitlines() if line.startswith("#")}
    for question in read_homework(name).questions:
        section = re.fullmatch(rf"{question.id} \((.+)\): not answered yet", told[f"test_{question.id}"])
        assert section and section[1] in headings, told[f"test_{question.id}"]
    assert sum("appears once" in text for text in told.values()) >= len(read_homework(name).questions) // 2


@pytest.mark.parametrize("name", homework_names())
def test_with_the_reference_s_answers_every_public_check_is_ok(
    name: str, run_release: Callable[..., NotebookNode]
) -> None:
    told = shown(run_release(name, solved=True))
    for question in read_homework(name).questions:
        assert "checks ok" in told[f"test_{question.id}"] and "all" in told[f"test_{question.id}"]
    assert not any("appears once" in text for text in told.values())
