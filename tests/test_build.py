"""The build: what students get, what it must never hold, and that an interrupted build leaves the old files whole."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from nbgrader.nbgraderformat import MetadataValidator

from autograder import write as writing
from autograder.builder.notebooks import FOLD, solution_notebook, source_notebook, student_notebook
from autograder.builder.release import release_files
from autograder.homework import BEGIN, END, Homework, homework_names, read_homework
from autograder.judge.diagnosis import Diagnostician, _settled, stored
from autograder.places import ASSIGNMENTS
from autograder.write import stale, write
from course_utils.explain.fingerprints import fingerprint
from course_utils.explain.sealed_prints import FILE, FIRST_LINE, unpack
from course_utils.terminal.safe_zip import read_zip

Run = Callable[..., Any]
AS_TEXT = 683  # bytes of one print, when prints were text


@pytest.fixture(scope="module", params=homework_names())
def homework(request: pytest.FixtureRequest) -> Homework:
    return read_homework(request.param)


def cells(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def solution_regions(homework: Homework) -> list[list[str]]:
    """The code of every solution region, line by line, without comments."""
    regions = []
    for question in homework.questions:
        for region in re.findall(rf"# {BEGIN}(.*?)# {END}", question.answer, re.DOTALL):
            lines = [line.split("  # ")[0].strip() for line in region.splitlines()]
            regions.append([line for line in lines if line])
    return regions


def solution_lines(homework: Homework) -> set[str]:
    """The lines of all solutions that say something: what no answer cell of a student's notebook may hold."""
    lines = {line for region in solution_regions(homework) for line in region}
    lines |= {line for asked in homework.explanations for line in asked.answer.splitlines()}
    return {line for line in lines if len(line) > 24}


def pieces(lines: list[str]) -> set[tuple[str, ...]]:
    """What would give a text away: any two telling neighbours, or its one line."""
    lines = [line for line in lines if len(line) > 12]
    return set(zip(lines, lines[1:], strict=False)) if len(lines) > 1 else {tuple(lines)} - {()}


def stripped(text: str) -> list[str]:
    """The lines of a text that has been through JSON or not, without indentation and comments."""
    text = text.replace('\\"', '"').replace("\\n", "\n")
    lines = [line.split("  # ")[0].strip().strip('",') for line in text.splitlines()]
    return [line for line in lines if len(line) > 12]


def staff_pieces(homework: Homework) -> set[tuple[str, ...]]:
    """Pieces of solutions and hidden checks that stand in nothing which the course gives to everyone."""
    secret = {piece for region in solution_regions(homework) for piece in pieces([line.strip('",') for line in region])}
    hidden = [homework.hidden_file(question.id).read_text() for question in homework.questions]
    own = [[line for line in stripped(text) if not line.startswith(("from ", "import "))] for text in hidden]
    secret |= {piece for lines in own for piece in pieces(lines)}  # modules that students have are no secret
    given = [cell.source for cell in homework.cells if not {"question", "explain"} & cell.metadata.keys()]
    given += [homework.public_file(question.id).read_text() for question in homework.questions]
    shown = {piece for text in given for piece in (*pieces(stripped(text)), *((line,) for line in stripped(text)))}
    return {piece for piece in secret - shown if len("".join(piece)) > 40}


def test_every_question_has_one_answer_cell_and_one_locked_check(homework: Homework) -> None:
    notebook = student_notebook(homework)
    MetadataValidator().validate_nb(notebook)
    nbformat.validate(notebook)
    by_id = cells(notebook)
    for question in homework.questions:
        answer, check = by_id[question.id], by_id[f"test_{question.id}"]
        assert answer.metadata.nbgrader.solution and not answer.metadata.nbgrader.grade
        assert check.metadata.nbgrader.locked and check.metadata.nbgrader.points == question.points
        assert check.source == f'grader.check("{question.id}")' and not check.metadata.editable
        assert f'raise NotImplementedError("{question.id}: ' in answer.source
        assert notebook.cells.index(check) == notebook.cells.index(answer) + 1


def test_stubs_keep_signature_and_docstring_and_nothing_of_the_solution(homework: Homework) -> None:
    by_id = cells(student_notebook(homework))
    for question in homework.questions:
        stub, reference = ast.parse(by_id[question.id].source), ast.parse(question.answer)
        told = stripped(re.sub(rf"# {BEGIN}.*?# {END}", "", question.answer, flags=re.DOTALL))
        assert not (solution_lines(homework) - set(told)) & set(stripped(by_id[question.id].source))
        asked_for = [node for node in reference.body if not getattr(node, "name", "").startswith("_")]
        for mine, theirs in zip(stub.body, asked_for, strict=True):  # a solution may bring helpers of its own
            assert type(mine) is type(theirs)
            if isinstance(mine, ast.FunctionDef):
                assert isinstance(theirs, ast.FunctionDef)
                assert ast.dump(mine.args) == ast.dump(theirs.args) and ast.get_docstring(mine)


def test_the_help_is_folded_and_the_card_is_there(homework: Homework) -> None:
    text = "\n".join(cell.source for cell in student_notebook(homework).cells if cell.cell_type == "markdown")
    for step in FOLD.values():
        assert text.count(f"<details><summary>{step}</summary>") == len(homework.questions)
    assert "True = padding" in text


def test_the_solution_notebook_has_solutions_and_no_markers(homework: Homework) -> None:
    text = "\n".join(cell.source for cell in solution_notebook(homework).cells)
    assert BEGIN not in text and all(line in text for line in solution_lines(homework))
    assert BEGIN in "\n".join(cell.source for cell in source_notebook(homework).cells)


def test_the_release_holds_the_assignment_and_course_utils_and_nothing_of_staff(homework: Homework) -> None:
    files = release_files(homework.name)
    names = {path.removeprefix(f"{homework.name}/") for path in files}
    assert {
        f"{homework.name}.ipynb",
        "course_utils/__init__.py",
        "pyproject.toml",
        "requirements.txt",
        "README.md",
    } <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {
        f"{homework.name}.ipynb",
        "tests",
        "course_utils",
        "pyproject.toml",
        "requirements.txt",
        "README.md",
    }
    original = read_zip(files.pop(f"{homework.name}/course_utils/originals/{homework.name}.zip"), "the original")
    handed_out = (name for name in names if name.startswith(("tests/", homework.name)))
    assert original == {name: files[f"{homework.name}/{name}"] for name in handed_out}
    secret = staff_pieces(homework)
    assert len(secret) > 8 * len(homework.questions)
    assert f"{homework.name}/tests/{FILE}" in files
    for path, content in files.items():
        text = told_in(content) if path.endswith(FILE) else content.decode()
        lines = stripped(text)
        found = secret & (set(zip(lines, lines[1:], strict=False)) | {(line,) for line in lines})
        assert not found, f"{path} holds staff's lines: {sorted(found)[:3]}"
        assert BEGIN not in text
        assert not re.search(r"^\s*(from|import) (autograder|solutions)", text, re.MULTILINE), path


def told_in(content: bytes) -> str:
    """All text in a file of mistakes."""
    known = unpack(content).values()
    hints = [f"{mistake.label}\n{mistake.hint}" for catalogue in known for mistake in catalogue.mistakes]
    return "\n".join([*hints, *(catalogue.probes for catalogue in known)])


def test_the_release_holds_no_reference_values(homework: Homework) -> None:
    """Fingerprints of mistakes ship, those of the right answer do not: on no probe do they agree with it."""
    diagnostician = Diagnostician(homework)
    for question in homework.questions:
        right = diagnostician._prints(question.id, "")
        known = stored(ASSIGNMENTS / homework.name, question.id)
        assert known and known.mistakes
        for mistake in known.mistakes:
            for probe, value in mistake.prints.items():
                assert not value.fits(right[probe]), f"{question.id} {mistake.label} {probe}"


def test_what_students_open_is_short_and_begins_with_the_checks(homework: Homework) -> None:
    folder = ASSIGNMENTS / homework.name
    known = unpack((folder / "tests" / FILE).read_bytes())
    for question in homework.questions:
        text = (folder / "tests" / f"{question.id}.py").read_text()
        lines = text.splitlines()
        assert len(lines) <= 400 and max(map(len, lines)) <= 160
        assert all(line.startswith("# ") for line in lines[:2]) and lines[2].startswith('"""')
        public, probes = homework.public_file(question.id).read_text(), known[question.id].probes
        assert "def probe_" not in text and "def test_" not in probes
        for node in ast.parse(public).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                source = ast.get_source_segment(public, node)
                assert (source in text) != (source in probes), "as its author wrote it, in one of the two"
                assert (source in probes) >= node.name.startswith("probe_")
        first = next(i for i, line in enumerate(public.splitlines()) if line.startswith(("def test_", "@pytest")))
        assert lines.index("@explain.case") <= first + 20
    prints = sum(len(mistake.prints) for catalogue in known.values() for mistake in catalogue.mistakes)
    size = (folder / "tests" / FILE).stat().st_size
    assert size < AS_TEXT / 10 * prints, "what is known of mistakes has a tenth of what it had as text"


def test_what_students_get_for_a_question_has_less_than_a_quarter_of_what_it_had() -> None:
    """With fingerprints as text and half as many checks it was 80,700 bytes."""
    names = homework_names()
    size = sum(path.stat().st_size for name in names for path in (ASSIGNMENTS / name).rglob("*") if path.is_file())
    assert size < 80_700 / 4 * sum(len(read_homework(name).questions) for name in names)


def test_a_student_who_opens_the_file_of_mistakes_reads_one_line(homework: Homework) -> None:
    content = (ASSIGNMENTS / homework.name / "tests" / FILE).read_bytes()
    assert content.startswith(b"# Generated by `autograder build`")
    for entries in homework.mistakes.values():
        for entry in entries:
            assert entry.label.encode() not in content and entry.text[:20].encode() not in content
    assert len(content) < 60_000


def test_the_hints_never_hold_the_solution(homework: Homework) -> None:
    for entries in homework.mistakes.values():
        for entry in entries:
            assert not any(line in entry.text for line in solution_lines(homework)), entry.label


@pytest.fixture
def build(commands: Run) -> Run:
    def run(course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = commands(course)("autograder", *arguments)
        return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)

    return run


def test_build_then_check_then_edit_then_check_names_the_stale_file(tiny: Path, build: Run) -> None:
    assert build(tiny, "build").returncode == 0
    assert build(tiny, "build", "--check").returncode == 0
    source = tiny / "solutions" / "hw9_tiny.py"
    source.write_text(source.read_text().replace("Return half", "Give half"))
    (tiny / "assignments" / "hw9_tiny" / "tests" / "q9_9.py").write_text("left over")
    told = build(tiny, "build", "--check")
    assert told.returncode == 1 and "assignments/hw9_tiny/hw9_tiny.ipynb is stale" in told.stdout
    assert "q9_9.py is stale" in told.stdout


def test_a_file_of_mistakes_that_another_zlib_has_written_is_not_stale_and_a_damaged_one_is(
    tiny: Path, build: Run
) -> None:
    assert build(tiny, "build").returncode == 0
    file = tiny / "assignments" / "hw9_tiny" / "tests" / FILE
    whole = file.read_bytes()
    other = FIRST_LINE + zlib.compress(zlib.decompress(whole[len(FIRST_LINE) :]), 0)
    file.write_bytes(other)
    for options in ((), ("--anew",)):
        assert build(tiny, "build", "--check", *options).returncode == 0
        assert build(tiny, "build", *options).returncode == 0 and file.read_bytes() == other
    for damaged in (whole[:-4], b"", None):
        file.unlink() if damaged is None else file.write_bytes(damaged)
        told = build(tiny, "build", "--check")
        assert told.returncode == 1 and "assignments/hw9_tiny/tests/mistakes.dat is stale" in told.stdout
        assert build(tiny, "build").returncode == 0 and unpack(file.read_bytes()) == unpack(whole)


def test_a_changed_mistake_makes_the_file_of_mistakes_stale(tiny: Path, build: Run) -> None:
    assert build(tiny, "build").returncode == 0
    catalogue = tiny / "autograder" / "suites" / "hw9_tiny" / "mistakes" / "q9_1.py"
    catalogue.write_text(catalogue.read_text().replace("x * 3", "x * 5"))
    told = build(tiny, "build", "--check")
    assert told.returncode == 1 and "tests/mistakes.dat is stale" in told.stdout and ".py is stale" not in told.stdout


def test_last_digits_of_another_machine_change_no_print() -> None:
    outputs = {"number": 0.1234567, "many": [i / 7 for i in range(9)], "few": [3.0, 0.0], "word": "dot"}
    tensors = {name: torch.tensor(value) if name != "word" else value for name, value in outputs.items()}
    old = _settled("q9_1", {name: fingerprint(value) for name, value in tensors.items()}, {})
    for by, kept in ((1e-8, True), (1e-2, False)):
        moved = {name: value * (1 + by) if name != "word" else value for name, value in tensors.items()}
        new = _settled("q9_1", {name: fingerprint(value) for name, value in moved.items()}, old)
        assert {name: new[name] == old[name] for name in new} == {name: kept or name == "word" for name in new}


def test_a_broken_source_writes_nothing_and_exits_with_2(tiny: Path, build: Run) -> None:
    assert build(tiny, "build").returncode == 0
    before = {path: path.read_bytes() for path in (tiny / "assignments").rglob("*") if path.is_file()}
    source = tiny / "solutions" / "hw9_tiny.py"
    source.write_text(source.read_text().replace("    # END SOLUTION\n", "", 1))
    for command in ("build", "verify"):
        told = build(tiny, command)
        assert told.returncode == 2 and "solutions/hw9_tiny.py:14:" in told.stderr and "Traceback" not in told.stderr
    assert before == {path: path.read_bytes() for path in (tiny / "assignments").rglob("*") if path.is_file()}


def test_verify_proves_a_good_suite_and_names_every_miss_of_a_weak_one(tiny: Path, build: Run) -> None:
    assert build(tiny, "verify").returncode == 0
    suite = tiny / "autograder" / "suites" / "hw9_tiny"
    (suite / "mistakes" / "q9_1.py").write_text(
        (suite / "mistakes" / "q9_1.py").read_text()
        + '\n# %% not-wrong\n"""Right in truth."""\ndef twice(x):\n    return x + x\n'
    )
    (suite / "variants" / "q9_2.py").write_text(
        (suite / "variants" / "q9_2.py").read_text()
        + '\n# %% not-right\n"""Wrong in truth."""\ndef half(x):\n    return x\n'
    )
    told = build(tiny, "verify")
    assert told.returncode == 1
    assert "q9_1 mistake not-wrong: keeps every point" in told.stdout
    assert "q9_2 variant not-right: is right, but q9_2/test_half_of_four says failed" in told.stdout


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_an_interrupted_write_leaves_every_old_file_whole(tmp_path: Path, monkeypatch, fails_at: int) -> None:
    files = {tmp_path / f"{name}.txt": f"new {name}".encode() for name in "abc"}
    for path in files:
        path.write_text("old")
    real, calls = os.fsync, 0

    def full(file: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(writing.os, "fsync", full)
    with pytest.raises(OSError):
        write(files, [tmp_path])
    assert [path.read_text() for path in files] == ["old"] * 3
    assert not list(tmp_path.glob("*.new"))
    monkeypatch.undo()
    write(files, [tmp_path])
    assert stale(files, [tmp_path]) == []
