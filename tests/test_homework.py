"""Reading a homework's source: everything wrong with it is told with its place and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.errors import BadInput, BadSource
from autograder.homework import Homework, read_homework


def read(folder: Path, **how: Any) -> Homework:
    return read_homework("hw9_tiny", folder / "solutions", folder / "autograder" / "suites", **how)


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
    ],
)
def test_a_question_needs_public_and_hidden_checks_but_not_in_a_draft(tiny: Path, file: str, words: str) -> None:
    (tiny / "autograder" / "suites" / "hw9_tiny" / file).unlink()
    with pytest.raises(BadSource, match=words):
        read(tiny)
    (told,) = read(tiny, draft=True).unfinished
    assert words in told.what


@pytest.mark.parametrize(("file", "words"), [("mistakes/q9_1.py", "0 mistakes"), ("variants/q9_2.py", "0 variants")])
def test_few_mistakes_or_variants_are_a_warning(tiny: Path, file: str, words: str) -> None:
    assert read(tiny).warnings == ()
    (tiny / "autograder" / "suites" / "hw9_tiny" / file).unlink()
    (told,) = read(tiny).warnings
    assert words in told.what and told.path.name == "hw9_tiny.py" and told.line in (11, 29) and told.remedy


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("points=40", "points=41", 11, "add to 101, not to 100"),
        ('# %% [markdown] help="q9_1"', "# %% [markdown]", 11, "0 help ladder cells"),
        ('# %% [markdown] question="q9_1"', "# %% [markdown]", 11, "0 text cells"),
        ("# hint: add", "# hnt: add", 18, "no `hint:`"),
        ("Return half", "TODO: say it. Return half", 27, "TODO: say it"),
        ("Return half", "As in @q9_7, return half", 27, "`@q9_7` is a question that no homework has"),
    ],
)
def test_what_is_unfinished_is_refused_but_in_a_draft(tiny: Path, old: str, new: str, line: int, words: str) -> None:
    edit(tiny, old, new)
    with pytest.raises(BadSource):
        read(tiny)
    told = [problem for problem in read(tiny, draft=True).unfinished if words in problem.what]
    assert told and told[0].line == line and told[0].remedy


def test_what_another_question_lacks_does_not_hinder_one(tiny: Path) -> None:
    suite = tiny / "autograder" / "suites" / "hw9_tiny"
    (suite / "hidden" / "test_q9_2.py").unlink()
    (suite / "mistakes" / "q9_2.py").write_text("# %% no text\nx = 1\n")
    assert read(tiny, question="q9_1").unfinished == ()
    with pytest.raises(BadSource, match="q9_2 has no hidden suite"):
        read(tiny, question="q9_2")
    with pytest.raises(BadInput, match="hw9_tiny has no question q9_3. It has q9_1, q9_2."):
        read(tiny, question="q9_3")


def test_numbers_are_written_into_headings_and_references(tiny: Path) -> None:
    edit(tiny, "Return half", "Undo @q9_1: return half")
    edit(tiny, "# hint: divide", "# hint: look at @q9_1.")
    homework = read(tiny)
    texts = [cell.source for cell in homework.cells if cell.kind == "markdown"]
    assert any(text.startswith("## 9.2 Half\nUndo 9.1: return half") for text in texts)
    assert any("hint: look at 9.1." in text for text in texts)
    assert homework.titles == {"q9_1": "Twice", "q9_2": "Half"}
    assert homework.sections == {"q9_1": "9.1 Twice", "q9_2": "9.2 Half"}


def test_a_reference_reaches_other_homeworks(tiny: Path) -> None:
    (tiny / "solutions" / "hw8_other.py").write_text('# %% [markdown] explain="q8_3" points=1\n# ### Why\n')
    edit(tiny, "Return half", "As in @q8_3, return half")
    assert any("As in 8.1, return half" in cell.source for cell in read(tiny).cells)  # the first of its page


def test_numbers_follow_the_order_of_the_page_and_ids_do_not(tiny: Path) -> None:
    path = tiny / "solutions" / "hw9_tiny.py"
    path.write_text(path.read_text().replace("q9_1", "q9_7").replace("Return half", "Undo @q9_7: return half"))
    for folder in ("public", "hidden", "mistakes", "variants"):
        for file in (tiny / "autograder" / "suites" / "hw9_tiny" / folder).glob("*q9_1.py"):
            file.rename(file.with_name(file.name.replace("q9_1", "q9_7")))
    texts = [cell.source for cell in read(tiny).cells if cell.kind == "markdown"]
    assert any(text.startswith("## 9.1 Twice") for text in texts)
    assert any(text.startswith("## 9.2 Half\nUndo 9.1: return half") for text in texts)


def test_a_heading_with_the_number_of_another_question_is_told(tiny: Path) -> None:
    edit(tiny, "# ## Half", "# ## 9.1 Half")
    with pytest.raises(BadSource, match="hw9_tiny.py:26: the heading says 9.1, but q9_2 is number 9.2 of"):
        read(tiny)
    edit(tiny, "# ## 9.1 Half", "# ## 9.2 Half")
    assert read(tiny).titles["q9_2"] == "Half"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("half, reference", "asks for `reference`, which students do not have. That is for hidden suites"),
        ("half, student", "asks for `student`, which students do not have. That is for hidden suites"),
        ("half, in_box", "asks for `in_box`, which students do not have. That is for hidden suites"),
        ("hafl", "asks for `hafl`, which students do not have. Ask for `rng`, a pytest parameter, or one of half, twi"),
    ],
)
def test_a_public_check_may_not_ask_for_what_students_lack(tiny: Path, arguments: str, words: str) -> None:
    path = tiny / "autograder" / "suites" / "hw9_tiny" / "public" / "test_q9_2.py"
    path.write_text(path.read_text().replace("def test_half_of_four(half)", f"def test_half_of_four({arguments})"))
    with pytest.raises(BadSource) as caught:
        read(tiny)
    (problem,) = caught.value.problems
    assert words in str(problem) and (problem.path, problem.line) == (path, 5)


def test_a_public_check_may_have_a_generator_parameters_and_other_answers(tiny: Path) -> None:
    path = tiny / "autograder" / "suites" / "hw9_tiny" / "public" / "test_q9_2.py"
    more = """
import pytest

SIZES = pytest.mark.parametrize(("a", "b"), [(1, 2)])


@SIZES
@pytest.mark.parametrize("c, d", [(3, 4)])
def test_more(half, twice, rng, a, b, c, d, e=1, *, f=2):
    "A sentence."
"""
    path.write_text(path.read_text() + more)
    assert read(tiny)


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
