"""Reading a homework's source: everything wrong with it is told with its place and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.errors import BadInput, BadSource
from autograder.homework import read_homework


def read(folder: Path):
    return read_homework("hw9_tiny", folder / "solutions", folder / "autograder" / "suites")


def edit(folder: Path, old: str, new: str, count: int = 1) -> None:
    path = folder / "solutions" / "hw9_tiny.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def test_a_good_source_gives_its_questions(tiny: Path) -> None:
    homework = read(tiny)
    assert [(q.id, q.points, q.names) for q in homework.questions] == [
        ("q9_1", 60, ("twice",)),
        ("q9_2", 40, ("half",)),
    ]
    assert len(homework.mistakes["q9_1"]) == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("    # END SOLUTION\n", "", 14, "never closed"),
        ("    return 2 * x\n", "    # BEGIN SOLUTION\n    return 2 * x\n", 15, "inside the region of line 14"),
        ("    # BEGIN SOLUTION\n", "", 15, "without `# BEGIN SOLUTION`"),
        ("import torch\n", "import torch\n# BEGIN SOLUTION\n# END SOLUTION\n", 6, "outside a question"),
        ('question="q9_2" points', 'question="q9_1" points', 29, "answered twice (first on line 11)"),
        ("points=40", "points=41", 11, "add to 101, not to 100"),
        ("points=40", "", 29, "no usable `points`"),
        ("difficulty=1", "difficulty=7", 11, "no usable `difficulty`"),
        ("minutes=5", "minuts=5", 11, "unknown cell metadata `minuts`"),
        ('# %% [markdown] help="q9_1"', "# %% [markdown]", 11, "0 help ladder cells"),
        ('# %% [markdown] question="q9_1"', "# %% [markdown]", 11, "0 text cells"),
        ("# hint: add", "# hnt: add", 18, "no `hint:`"),
        ("def half(x):", "def half(x:", 30, "not valid Python"),
        ('question="q9_2" points', 'question="q8_2" points', 29, "not a question id of hw9_tiny"),
    ],
)
def test_a_broken_source_is_named_with_line_and_remedy(tiny: Path, old: str, new: str, line: int, words: str) -> None:
    edit(tiny, old, new)
    with pytest.raises(BadSource) as caught:
        read(tiny)
    told = [problem for problem in caught.value.problems if words in problem.what]
    assert told and told[0].line == line, str(caught.value)
    assert told[0].path.name == "hw9_tiny.py" and told[0].remedy


def test_all_problems_are_told_at_once(tiny: Path) -> None:
    edit(tiny, "    # END SOLUTION\n", "", count=2)
    with pytest.raises(BadSource) as caught:
        read(tiny)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("public/test_q9_1.py", "no public checks"),
        ("hidden/test_q9_2.py", "no hidden suite"),
        ("mistakes/q9_1.py", "0 mistakes"),
        ("variants/q9_2.py", "0 variants"),
    ],
)
def test_a_question_needs_suite_mistakes_and_variants(tiny: Path, file: str, words: str) -> None:
    (tiny / "autograder" / "suites" / "hw9_tiny" / file).unlink()
    with pytest.raises(BadSource, match=words):
        read(tiny)


def test_a_suite_without_question_is_told(tiny: Path) -> None:
    (tiny / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_7.py").write_text("\ndef test_x(): ...\n")
    with pytest.raises(BadSource, match="belongs to no question"):
        read(tiny)


def test_a_catalogue_cell_needs_a_label_and_a_text(tiny: Path) -> None:
    path = tiny / "autograder" / "suites" / "hw9_tiny" / "mistakes" / "q9_1.py"
    path.write_text(
        path.read_text() + "\n# %% Not A Label\n'''Text.'''\n\n# %% silent\nx = 1\n\n# %% case-0\n'''Again.'''\n"
    )
    with pytest.raises(BadSource) as caught:
        read(tiny)
    text = str(caught.value)
    assert "no label" in text and "`silent` does not say" in text and "`case-0` is taken" in text


def test_an_unknown_homework_is_told_which_there_are(tiny: Path) -> None:
    with pytest.raises(BadInput, match="Known homeworks: hw9_tiny"):
        read_homework("hw8_other", tiny / "solutions", tiny / "autograder" / "suites")


def test_a_file_that_is_not_text_is_told(tiny: Path) -> None:
    (tiny / "solutions" / "hw9_tiny.py").write_bytes(b"# %%\nx = 1\n\xff\xfe\n")
    with pytest.raises(BadSource, match="not UTF-8"):
        read(tiny)
