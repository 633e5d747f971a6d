"""The catalogue: an entry is code below the reference's answer, or an edit of it that must fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.catalogue import Entry, read_catalogue
from autograder.errors import BadSource
from autograder.homework import homework_names, read_homework, without_markers

ANSWER = '''\
def weigh(scores, values):
    """Weights over the last axis."""
    weights = softmax(scores, dim=-1)  # [T, S]
    if values is None:
        return weights
    return weights @ values'''


def entries(folder: Path, body: str, answer: str = ANSWER) -> list[Entry]:
    path = folder / "q9_1.py"
    path.write_text(f'# %% a-mistake\n"""The hint."""\n{body}\n')
    return read_catalogue(path, "q9_1", answer)


def source(folder: Path, body: str) -> str:
    (entry,) = entries(folder, body)
    assert (entry.label, entry.text, entry.line) == ("a-mistake", "The hint.", 1)
    return entry.source


def test_an_edit_gives_the_answer_with_that_text_replaced(tmp_path: Path) -> None:
    assert source(tmp_path, 'replace("dim=-1", "dim=-2")') == ANSWER.replace("dim=-1", "dim=-2")


def test_edits_apply_one_after_another(tmp_path: Path) -> None:
    edited = source(tmp_path, 'replace("weights @ values", "w @ values")\nreplace("w @ values", "values")')
    assert edited == ANSWER.replace("weights @ values", "values")


def test_an_edit_may_span_lines_and_remove_them(tmp_path: Path) -> None:
    body = 'replace("""    if values is None:\n        return weights\n""", "")\nreplace("x(scores", "x(2 * scores")'
    assert source(tmp_path, body).endswith("softmax(2 * scores, dim=-1)  # [T, S]\n    return weights @ values")


def test_other_code_of_an_edit_stands_below_the_edited_answer(tmp_path: Path) -> None:
    body = 'replace("softmax(", "_soft(")\n\n\ndef _soft(scores, dim):\n    return scores.exp()'
    edited = ANSWER.replace("softmax(", "_soft(")
    assert source(tmp_path, body) == f"{edited}\n\n\ndef _soft(scores, dim):\n    return scores.exp()"


def test_a_cell_without_edits_stays_as_it_is(tmp_path: Path) -> None:
    body = 'def weigh(scores, values):\n    return "a b".replace("a", "b")'
    assert source(tmp_path, body) == f'"""The hint."""\n{body}'


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ('replace("dim=0", "dim=1")', 3, "is not in the answer: `dim=0`"),
        ('replace("dim=-1", "dim=0")\nreplace("dim=-1", "dim=1")', 4, "is not in the answer: `dim=-1`"),
        ('replace("return weights", "return 1")', 3, "is 2 times in the answer: `return weights`"),
        ('replace("""if x:\n        y""", "")', 3, "`if x: ...`"),
        ('replace("# [T, S]", "# [S, T]")', 3, "change nothing"),
        ('replace("dim=-1)", "dim=-1")', 3, "not valid Python"),
        ('replace("    if values is None:\\n", "")', 3, "not valid Python"),
        ('replace("dim=-1")', 3, "takes two strings"),
        ('replace("dim=-1", new)', 3, "takes two strings"),
        ('replace("dim=-1", 2)', 3, "takes two strings"),
        ('replace("", "x")', 3, "takes two strings"),
        ('replace("dim=-1", "dim=0", count=2)', 3, "takes two strings"),
    ],
)
def test_an_edit_that_does_not_fit_is_told_with_file_line_and_remedy(
    tmp_path: Path, body: str, line: int, words: str
) -> None:
    with pytest.raises(BadSource) as caught:
        entries(tmp_path, body)
    (problem,) = caught.value.problems
    assert words in problem.what and problem.remedy
    assert (problem.path.name, problem.line) == ("q9_1.py", line)


def test_all_edits_that_do_not_fit_are_told_at_once(tmp_path: Path) -> None:
    second = '\n# %% another\n"""Hint."""\nreplace("nor this", "")'
    with pytest.raises(BadSource) as caught:
        entries(tmp_path, f'replace("not this", ""){second}')
    assert [problem.line for problem in caught.value.problems] == [3, 6]


def test_an_edit_that_no_longer_fits_its_reference_stops_the_homework(tiny: Path) -> None:
    suites, solutions = tiny / "autograder" / "suites", tiny / "solutions"
    mistakes = suites / "hw9_tiny" / "mistakes" / "q9_1.py"
    mistakes.write_text(mistakes.read_text() + '\n# %% thrice\n"""Not twice."""\nreplace("2 * x", "3 * x")\n')
    edited = read_homework("hw9_tiny", solutions, suites).mistakes["q9_1"][-1]
    assert "return 3 * x" in edited.source and "SOLUTION" not in edited.source
    path = solutions / "hw9_tiny.py"
    path.write_text(path.read_text().replace("return 2 * x", "return x + x"))
    with pytest.raises(BadSource) as caught:
        read_homework("hw9_tiny", solutions, suites)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == (mistakes, edited.line + 2)
    assert "`2 * x`" in problem.what


@pytest.mark.parametrize("name", homework_names())
def test_every_edit_of_the_course_leaves_the_names_that_the_answer_defines(name: str) -> None:
    homework = read_homework(name)
    for question in homework.questions:
        for entry in homework.mistakes[question.id]:
            space = without_markers(question.answer) + "\n" + entry.source
            compile(space, f"{entry.path}:{entry.line}", "exec")
            assert all(part in space for part in question.names), entry.label
