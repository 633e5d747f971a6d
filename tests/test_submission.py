"""What students hand in: whole, damaged and hostile notebooks become cells to run, with notes on what was assumed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from autograder import submission as submission_module
from autograder.answers import another_homework
from autograder.builder.notebooks import student_cells
from autograder.homework import Homework, read_homework
from autograder.submission import BadSubmission, RunCell, definitions_only, parse_submission, with_soft_imports


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


@pytest.mark.parametrize("last", ["def twice(x):\n    return x + x", "def other(x):\n    pass"])
def test_of_two_answered_cells_with_one_id_the_last_counts(notebook, homework, last: str) -> None:
    first = answer(notebook, "q9_1")
    mended = nbformat.v4.new_code_cell(last, metadata=first.metadata)
    notebook.cells.insert(notebook.cells.index(first) + 1, mended)
    submission = parse(notebook, homework)
    (one,) = [one for one in submission.assumptions if one.kind == "duplicate"]
    assert ("x + x" in keeper(submission.cells, "twice").source) == ("twice" in last) and one.not_taken


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


def renamed(notebook: nbformat.NotebookNode, source: str) -> nbformat.NotebookNode:
    answer(notebook, "q9_1").source = source
    return notebook


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def my_twice(x):\n    return 2 * x", "renamed"),
        ("def help(a, b):\n    return a\n\ndef my_twice(x):\n    return 2 * x", "renamed"),
        ("def my_twice(y):\n    return 2 * y", "misnamed"),
        ("def one(x):\n    return 2 * x\n\ndef other(x):\n    return x", "misnamed"),
        ("class Twice:\n    def __init__(self, x):\n        pass", "misnamed"),
        ("def half(x):\n    return 2 * x", ""),
        ("_twice = 2", ""),
    ],
)
def test_an_answer_under_another_name_is_graded_where_it_is_the_one_that_fits(
    notebook, homework, source: str, kind: str
) -> None:
    submission = parse(renamed(notebook, source), homework)
    told = [one.kind for one in submission.assumptions if one.kind in ("renamed", "misnamed")]
    assert told == ([kind] if kind else [])
    kept = [cell for cell in submission.cells if "twice" in cell.keep]
    assert [cell.source.endswith("twice = my_twice") for cell in kept] == ([True] if kind == "renamed" else [])
    if kind:
        assert "your cell defines" in submission.notes[0] and "expected `twice`" in submission.notes[0]


def test_an_answer_under_another_name_is_only_told_where_the_course_says_so(notebook, homework, monkeypatch) -> None:
    told = replace(submission_module.THE_COURSE, renamed_answers="told")
    monkeypatch.setattr(submission_module, "THE_COURSE", told)
    submission = parse(renamed(notebook, "def my_twice(x):\n    return 2 * x"), homework)
    assert [one.kind for one in submission.assumptions] == ["misnamed"]
    assert not any("twice" in cell.keep for cell in submission.cells)


@pytest.mark.parametrize(("name", "kind"), [("my_twice", "renamed"), ("unlike", "misnamed")])
def test_without_ids_an_answer_under_another_name_counts_where_the_names_are_alike(
    notebook, homework, name: str, kind: str
) -> None:
    renamed(notebook, f"def {name}(x):\n    return 2 * x")
    notebook.cells.remove(answer(notebook, "q9_2"))
    notebook.cells.append(nbformat.v4.new_code_cell("def half(x):\n    return x / 2"))
    for cell in notebook.cells:
        cell.metadata = {}
    kinds = [one.kind for one in parse(notebook, homework).assumptions]
    assert sorted(kinds) == sorted(["elsewhere", kind])


def test_an_answer_under_another_name_in_a_new_cell_below_the_stub_counts(notebook, homework) -> None:
    cell = answer(notebook, "q9_1")
    cell.source = 'def twice(x):\n    raise NotImplementedError("q9_1: write your answer here")'
    new = nbformat.v4.new_code_cell("def twice_2(x):\n    return 2 * x")
    notebook.cells.insert(notebook.cells.index(cell) + 1, new)
    assert keeper(parse(notebook, homework).cells, "twice").source.endswith("twice = twice_2")


@pytest.mark.parametrize("by", ["ids", "metadata", "title"])
def test_another_homework_is_recognised(notebook, homework, tiny: Path, by: str) -> None:
    (tiny / "solutions" / "hw8_other.py").write_text("# %% [markdown]\n# # Another homework\n")
    another_homework.__globals__["_titles"].cache_clear()
    for cell in notebook.cells:
        meta = cell.metadata.pop("nbgrader", None)
        if by == "ids" and meta:
            cell.metadata["nbgrader"] = meta | {"grade_id": meta["grade_id"].replace("q9", "q8")}
    notebook.cells[0].source = "# Another homework" if by == "title" else "# A tiny homework"
    notebook.metadata = {"otter": {"assignment_name": "hw8_other"}} if by == "metadata" else {}
    with pytest.raises(BadSubmission, match="a notebook of hw8_other, not of hw9_tiny") as caught:
        parse(notebook, homework)
    assert caught.value.status == "other homework"


def test_a_notebook_with_this_homework_s_ids_is_this_homework(notebook, homework) -> None:
    notebook.metadata = {"otter": {"assignment_name": "hw8_other"}}
    notebook.cells.append(nbformat.v4.new_code_cell("x = 1", metadata={"nbgrader": {"grade_id": "q8_1"}}))
    assert not parse(notebook, homework).assumptions


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


def test_an_import_in_vain_does_nothing_and_keeps_its_line() -> None:
    source = "import math, no_such\nfrom nowhere import (\n    a,\n    b)\ndef f(): return math.pi\n"
    soft = with_soft_imports(RunCell("cell", source, keep=("f",)))
    assert soft is not None and soft.keep == ("f",) and soft.source.split("\n")[4] == "def f(): return math.pi"
    names: dict[str, object] = {}
    exec(compile(soft.source, "cell", "exec"), names)
    assert "math" in names and names["f"]() == math.pi
    assert with_soft_imports(RunCell("cell", "x = 1")) is None


def test_what_a_plot_cell_defines_is_there_for_answers_and_its_work_is_not_done(notebook, homework) -> None:
    source = "from einops import rearrange\ndef helper(x):\n    return x\nhelper(print('slow'))"
    notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": ["plot"]}))
    (cell,) = [cell for cell in parse(notebook, homework).cells if "def helper" in cell.source]
    assert "rearrange" in cell.source and "slow" not in cell.source


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_a_cell_that_became_text_is_graded_and_told(kind, notebook, homework) -> None:
    answer(notebook, "q9_1").cell_type = kind
    submission = parse(notebook, homework)
    assert keeper(submission.cells, "twice").id == "q9_1"
    assert [note for note in submission.notes if f"is a {kind} cell" in note]


def test_a_cell_that_gives_python_s_names_another_meaning_is_told(notebook, homework) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell("sum = 0\nlist = [1]"))
    (note,) = parse(notebook, homework).notes
    assert "gives `list`, `sum` another meaning, which Python has" in note


def test_a_notebook_of_format_3_is_read(notebook, homework) -> None:
    text = {"code": "input", "markdown": "source"}
    cells = [{"cell_type": c.cell_type, "metadata": c.metadata, text[c.cell_type]: c.source} for c in notebook.cells]
    raw = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()
    assert keeper(parse_submission(raw, ".ipynb", homework).cells, "twice").id == "q9_1"


def test_a_percent_file_is_a_submission_too(homework) -> None:
    submission = parse_submission(homework.source.read_bytes(), ".py", homework)
    assert "return 2 * x" in keeper(submission.cells, "twice").source


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
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
