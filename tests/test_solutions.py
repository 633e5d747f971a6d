"""`autograder solutions run`: solution notebooks in a real kernel, as notebooks and as pages that need no network."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from autograder.builder.notebooks import solution_notebook
from autograder.builder.page import markdown_html
from autograder.homework import homework_names, read_homework

BEGINNING = """
# %% [markdown]
# One half is $\\tfrac12$, and $$\\Big( \\sum_{i=1}^n x_i, \\dots \\Big)$$ needs no network.

# %%
import os

import torch

from course_utils import Grader

grader = Grader("hw9_tiny")
print("fast:", os.environ.get("COURSE_FAST"))
"""
END = """
# %% tags=["plot"]
raise ValueError("a cell of ours is broken")

# %% tags=["plot"]
print("but this one runs")

# %% tags=["plot"]
os._exit(1)

# %% tags=["plot"]
print("and this one does not")
"""


def test_cells_that_fail_and_checks_that_are_not_green_are_told_and_the_page_is_written(tiny: Path) -> None:
    from autograder.builder.execute import execute_solution  # brings torch

    source = tiny / "solutions" / "hw9_tiny.py"
    text = source.read_text().replace("return x / 2", "return x / 2 if x == 3.0 else x + 2")
    source.write_text(text.replace("\n# %%\nimport torch\n", BEGINNING) + END)
    homework = read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")
    done: list[str] = []
    executed = execute_solution(homework, tiny / "out", True, 120, done.append)

    red, raised, died = executed.failures
    assert red.name == "test_q9_2" and "the check is not green: q9_2" in red.error and "half(4) is 2.0" in red.error
    assert (raised.name, raised.error) == ("", "ValueError: a cell of ours is broken")
    assert "the kernel died here" in died.error and died.cell == raised.cell + 2
    assert (executed.cells, executed.checks) == (9, 2) and len(done) == 7

    cells = nbformat.read(executed.notebook, 4).cells
    printed = [output.text for cell in cells for output in cell.get("outputs", []) if output.output_type == "stream"]
    assert "fast: 1\n" in printed and "but this one runs\n" in printed and "and this one does not\n" not in printed
    page = executed.page.read_text()
    assert "all 1 checks ok" in page and "a cell of ours is broken" in page
    assert page.count("<math") == 2 and not re.search(r"""(src|href)=["']?(https?:)?//""", page)


@pytest.mark.parametrize("name", homework_names())
def test_every_formula_can_be_drawn_without_the_network_and_every_link_inside_leads_somewhere(name: str) -> None:
    cells = [cell for cell in solution_notebook(read_homework(name)).cells if cell.cell_type == "markdown"]
    pages = [markdown_html(cell.source) for cell in cells]
    assert [cell.source for cell, page in zip(cells, pages, strict=True) if 'class="tex"' in page] == []
    whole = "".join(pages)
    assert set(re.findall(r'href="#([^"]+)"', whole)) <= set(re.findall(r'id="([^"]+)"', whole))


def test_a_build_that_changes_nothing_leaves_a_run_notebook_as_it_is(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograder.builder.generated import as_built  # brings torch

    monkeypatch.setattr("autograder.builder.generated.BUILD", tiny / "build")
    homework = read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")
    path = tiny / "build" / "hw9_tiny" / "solution" / "hw9_tiny.ipynb"
    assert not as_built(homework)
    notebook = solution_notebook(homework)
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="an output")]
    path.parent.mkdir(parents=True)
    path.write_text(nbformat.writes(notebook))
    assert as_built(homework)
    notebook.cells[1].source += "\n# changed"
    path.write_text(nbformat.writes(notebook))
    assert not as_built(homework)
