"""What students hand in: whole, damaged and hostile notebooks become cells to run, with notes on what was assumed."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from autograder.builder.notebooks import student_cells
from autograder.homework import Homework, read_homework
from autograder.submission import BadSubmission, RunCell, definitions_only, parse_submission


@pytest.fixture
def homework(tiny: Path) -> Homework:
    return read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")


@pytest.fixture
def notebook(homework: Homework) -> nbformat.NotebookNode:
    """The tiny homework, answered."""
    return nbformat.v4.new_notebook(cells=student_cells(homework, solved=True))


def parse(notebook: nbformat.NotebookNode, homework: Homework):
    return parse_submission(nbformat.writes(notebook).encode(), ".ipynb", homework)


def keeper(cells: tuple[RunCell, ...], name: str) -> RunCell:
    (cell,) = [cell for cell in cells if name in cell.keep]
    return cell


def answer(notebook: nbformat.NotebookNode, question: str) -> nbformat.NotebookNode:
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == question)


def test_a_whole_notebook_runs_its_answers_and_not_its_checks(notebook, homework) -> None:
    submission = parse(notebook, homework)
    assert submission.notes == ()
    assert keeper(submission.cells, "twice").id == "q9_1"
    assert not any("grader.check" in cell.source for cell in submission.cells)


def test_given_cells_run_even_when_the_student_deleted_them(notebook, homework) -> None:
    notebook.cells = [cell for cell in notebook.cells if cell.source != "import torch"]
    assert parse(notebook, homework).cells[0].source == "import torch"


def test_training_and_plotting_cells_are_skipped(notebook, homework) -> None:
    for tag in ("plot", "training"):
        notebook.cells.append(nbformat.v4.new_code_cell(f"x = '{tag}'", metadata={"tags": [tag]}))
    assert not any(cell.source.startswith("x = ") for cell in parse(notebook, homework).cells)


def test_an_answer_tagged_as_plot_still_counts(notebook, homework) -> None:
    answer(notebook, "q9_1").metadata["tags"] = ["plot"]
    assert keeper(parse(notebook, homework).cells, "twice").id == "q9_1"


def test_an_answer_without_its_id_is_found_by_the_name_it_defines(notebook, homework) -> None:
    del answer(notebook, "q9_1").metadata["nbgrader"]
    submission = parse(notebook, homework)
    assert "`twice` was taken from cell" in submission.notes[0]
    assert "return 2 * x" in keeper(submission.cells, "twice").source


def test_of_two_cells_with_one_id_the_answered_one_counts(notebook, homework) -> None:
    stub = nbformat.v4.new_code_cell('def twice(x):\n    raise NotImplementedError("q9_1: write your answer here")')
    stub.metadata = answer(notebook, "q9_1").metadata
    notebook.cells.insert(0, stub)
    submission = parse(notebook, homework)
    assert "carry this question's id" in submission.notes[0]
    assert "return 2 * x" in keeper(submission.cells, "twice").source


def test_an_answer_in_a_new_cell_below_the_stub_counts(notebook, homework) -> None:
    cell = answer(notebook, "q9_1")
    notebook.cells.append(nbformat.v4.new_code_cell(cell.source))
    cell.source = 'def twice(x):\n    raise NotImplementedError("q9_1: write your answer here")'
    assert "return 2 * x" in keeper(parse(notebook, homework).cells, "twice").source


def test_merged_cells_answer_both_questions(notebook, homework) -> None:
    first, second = answer(notebook, "q9_1"), answer(notebook, "q9_2")
    first.source += "\n\n" + second.source
    notebook.cells.remove(second)
    cells = parse(notebook, homework).cells
    assert keeper(cells, "half") == keeper(cells, "twice")


def test_a_later_scratch_cell_does_not_take_the_answer_away(notebook, homework) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell("def twice(x):\n    return 'scratch'"))
    assert keeper(parse(notebook, homework).cells, "twice").id == "q9_1"


@pytest.mark.parametrize(
    "source", ["%matplotlib inline\nx = 1", "!rm -rf /\nx = 1", "%%bash\nls", "x = !ls", "torch.nn?"]
)
def test_magics_and_shell_lines_become_plain_python(notebook, homework, source) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell(source))
    compile(parse(notebook, homework).cells[-1].source, "cell", "exec")


@pytest.mark.parametrize(
    "magics", ["%%time\n", "%%capture out\n", "%%prun -s time\n", "%%timeit -n 3\n", "\n%%capture\n\n%%time\n"]
)
@pytest.mark.parametrize("labelled", [True, False])
def test_an_answer_below_a_magic_that_measures_counts(notebook, homework, magics: str, labelled: bool) -> None:
    cell = answer(notebook, "q9_1")
    plain = cell.source + "\n%time y = twice(1)\nz = %time y + 1\n!ls"
    cell.source = magics + plain
    if not labelled:
        del cell.metadata["nbgrader"]
    graded = keeper(parse(notebook, homework).cells, "twice").source
    assert graded.startswith("\n" * magics.count("\n") + plain.partition("\n")[0]), "lines keep their numbers"
    assert "\ny = twice(1)\nz = y + 1\n" in graded
    compile(graded, "cell", "exec")


def test_a_timeit_that_defines_nothing_is_left_out(notebook, homework) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell("%%timeit\ntrain_for_hours()"))
    assert parse(notebook, homework).cells[-1].source.strip() == ""


@pytest.mark.parametrize("labelled", [True, False])
def test_an_answer_below_a_magic_of_another_language_is_told(notebook, homework, labelled: bool) -> None:
    cell = answer(notebook, "q9_1")
    cell.source = f"%%writefile twice.py\n{cell.source}"
    if not labelled:
        del cell.metadata["nbgrader"]
    submission = parse(notebook, homework)
    assert not any("twice" in cell.keep for cell in submission.cells)
    (note,) = submission.notes
    assert note.startswith("q9_1:") and "begins with `%%writefile`" in note


@pytest.mark.parametrize(
    ("source", "rest"),
    [
        ("import time; time.sleep(9)\nx = 1", "import time; pass\nx = 1"),
        ("for i in x:\n    f(\n        i)\ndef f(): pass", "\n\npass\ndef f(): pass"),
        ("import a; b(\n); c = 1", "import a; \npass; c = 1"),
        ("\u00e9 = '\u00e9'; f(); y = -x.z", "\u00e9 = '\u00e9'; pass; y = -x.z"),
        ("@f(1)\nclass C: pass\nC()\r\nd = {1: lambda: f()}", "@f(1)\nclass C: pass\npass\nd = {1: lambda: f()}"),
        ("answer = f(1)\nother = f(1)", "answer = f(1)\npass"),
        ("await f()\nx = [f(i) for i in y]", "pass\npass"),
    ],
)
def test_only_definitions_are_left_of_a_cell(source: str, rest: str) -> None:
    cell = definitions_only(RunCell("cell", source, keep=("answer",)))
    assert cell == RunCell("cell", rest, keep=("answer",))
    compile(rest, "cell", "exec")


@pytest.mark.parametrize("source", ["import math\nx: int = 1\ndef f(): g()", "f(", "", "f(); " * 50_000, "\ud800"])
def test_nothing_is_left_out_of_a_cell_without_work_or_out_of_no_python(source: str) -> None:
    assert definitions_only(RunCell("cell", source)) is None


def test_a_percent_file_is_a_submission_too(homework) -> None:
    submission = parse_submission(homework.source.read_bytes(), ".py", homework)
    assert "return 2 * x" in keeper(submission.cells, "twice").source


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b'{"cells": [', "not valid JSON"),
        (b"[]", "no list of cells"),
        (b'{"worksheets": []}', "no list of cells"),
        (b'{"cells": ' + b"[" * 100_000, "not valid JSON"),
        (json.dumps({"cells": [{"cell_type": "code"}] * 3000}).encode(), "3000 cells"),
    ],
)
def test_a_file_that_is_no_notebook_gets_a_sentence(homework, raw: bytes, words: str) -> None:
    with pytest.raises(BadSubmission, match=words):
        parse_submission(raw, ".ipynb", homework)


@pytest.mark.parametrize(
    "cell",
    [
        None,
        "text",
        {"cell_type": "code", "source": 7},
        {"cell_type": "code", "source": ["x = 1\n", None, "y = 2"]},
        {"cell_type": "code", "metadata": "none", "source": "x = 1"},
        {"cell_type": "code", "metadata": {"nbgrader": 5, "tags": {"a": 1}}, "source": "x = 1"},
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": ["q9_1"]}}, "source": "x = 1"},
        {"cell_type": "code", "source": "(" * 5000},
        {"cell_type": "code", "source": "\x00"},
    ],
)
def test_odd_cells_never_break_the_reader(notebook, homework, cell) -> None:
    data = json.loads(nbformat.writes(notebook))
    data["cells"].append(cell)
    submission = parse_submission(json.dumps(data).encode(), ".ipynb", homework)
    assert keeper(submission.cells, "half").id == "q9_2"
