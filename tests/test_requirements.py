"""Requirements: marks in texts, the checks that keep them, and what is told where the two do not agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.builder.notebooks import source_notebook, student_notebook
from autograder.builder.page_rules import kept_problems, sentence_problems
from autograder.errors import BadSource
from autograder.homework import Homework, read_homework
from autograder.percent import PercentCell
from autograder.requirements import read_requirements, without_marks

TEXT = "\n# Twice the number.\n"


def read(folder: Path, **how: bool) -> Homework:
    return read_homework("hw9_tiny", folder / "solutions", folder / "autograder" / "suites", **how)


def write(folder: Path, text: str, keeps: str = "") -> Homework:
    """The tiny homework with another text for its first question, and a `# keeps:` in its first check."""
    source = folder / "solutions" / "hw9_tiny.py"
    lines = source.read_text().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith('# %% [markdown] question="q9_1"'))
    heading = at + 1
    lines[heading + 1 : heading + 1] = ["#", *(f"# {line}".rstrip() for line in text.split("\n"))]
    source.write_text("\n".join(lines))
    check = folder / "autograder" / "suites" / "hw9_tiny" / "public" / "test_q9_1.py"
    if keeps:
        written = check.read_text()
        first = written.index('"""\n') + 4
        check.write_text(written[:first] + f"    # keeps: {keeps}\n" + written[first:])
    return read(folder)


def asked(text: str) -> list[tuple[str, str]]:
    """The requirements of a text as pairs of key and sentence."""
    cells = [
        PercentCell("markdown", text, 1, metadata={"question": "q1_1"}),
        PercentCell("code", "def f(): ...", 40, metadata={"question": "q1_1"}),
    ]
    return [(one.key, one.sentence) for one in read_requirements(cells)["q1_1"].requirements]


def unmarked(text: str) -> list[str]:
    cells = [
        PercentCell("markdown", text, 1, metadata={"question": "q1_1"}),
        PercentCell("code", "def f(): ...", 40, metadata={"question": "q1_1"}),
    ]
    return [sentence for _, sentence in read_requirements(cells)["q1_1"].unmarked]


def test_marks_are_seen_by_nobody_who_reads_the_notebook(tiny: Path) -> None:
    homework = write(tiny, "It must be exact. {=exact}\nThe width\n{=width}\nis free.", "exact, width")
    for notebook in (student_notebook(homework), source_notebook(homework)):
        text = "\n".join(cell.source for cell in notebook.cells)
        assert "It must be exact.\nThe width\nis free." in text and "{=" not in text
    assert [one.key for one in homework.asked["q9_1"].requirements] == ["exact", "width"]
    assert list(kept_problems(homework)) == []


def test_marks_in_the_docstring_of_an_answer_are_taken_out_and_python_is_left_alone(tiny: Path) -> None:
    source = tiny / "solutions" / "hw9_tiny.py"
    text = source.read_text()
    name = "def twice(x):\n"
    assert name in text
    changed = text.replace(name, f'{name}    """Twice x. {{~big}}"""\n    bits = {{~x}} if x is None else x\n')
    source.write_text(changed)
    homework = read(tiny)
    assert '"""Twice x."""\n    bits = {~x}' in homework.question("q9_1").answer
    assert homework.asked["q9_1"].requirements[0].hidden


@pytest.mark.parametrize(
    ("text", "keeps", "words"),
    [
        ("It must be exact. {=exact}", "", "no public check of q9_1 keeps `{=exact}`: It must be exact."),
        ("It must be exact. {=exact}", "exakt, exact", "keeps `exakt`, which the text of q9_1 does not ask for"),
        ("One. {=exact} Two. {=exact}", "exact", "has the key `exact` twice"),
        ("It never fails. {~never}", "", "is hidden on purpose, and the text of q9_1 does not say so"),
    ],
)
def test_what_text_and_checks_do_not_agree_on_is_a_problem(tiny: Path, text: str, keeps: str, words: str) -> None:
    (told,) = kept_problems(write(tiny, text, keeps))
    assert words in told.what and told.remedy and told.unfinished == "q9_1"
    assert told.path.name in ("hw9_tiny.py", "test_q9_1.py") and told.line > 1


def test_a_hidden_requirement_is_fine_where_the_text_says_what_hidden_checks_try(tiny: Path) -> None:
    homework = write(tiny, "It never fails. {~never}\nHidden checks also try numbers of any size.")
    assert list(kept_problems(homework)) == []


def test_a_mark_outside_a_question_and_one_that_is_none_are_refused(tiny: Path) -> None:
    with pytest.raises(BadSource, match=r"`\{=Not Good\}` is no mark"):
        write(tiny, "It must be exact. {=Not Good}")
    source = tiny / "solutions" / "hw9_tiny.py"
    source.write_text(source.read_text().replace("{=Not Good}", "") + "\n# %% [markdown]\n# The end. {=end}\n")
    with pytest.raises(BadSource, match="stands outside the text of a question"):
        read(tiny)


def test_formulas_are_no_marks() -> None:
    formula = r"$\stackrel{=}{x}$ and $\bar{=x}$, $a^{~b}$"
    assert without_marks(formula) == formula


def test_a_mark_belongs_to_the_sentence_before_it() -> None:
    text = "First `a.b. c` is said. Then it must hold. {=one} It never ends {=two}. A `ValueError`\notherwise. {=three}"
    keys = [("one", "Then it must hold."), ("two", "It never ends ."), ("three", "A `ValueError` otherwise.")]
    assert asked(text) == keys
    assert unmarked(text) == []


def test_sentences_that_sound_like_requirements_are_listed_unless_they_say_that_they_are_none() -> None:
    assert unmarked("It must hold. This is told. Padding never counts.") == ["It must hold.", "Padding never counts."]
    assert unmarked("It must hold. {=a} Padding never counts. {-}") == []
    assert unmarked("As before, zeros.\n\n```\nit must\n```\n") == ["As before, zeros."]


def test_each_bullet_below_a_must_is_a_requirement() -> None:
    text = "The result must:\n\n- have rows that add to 1; {=rows}\n- keep the dtype.\n\nThat is all."
    assert asked(text) == [("rows", "have rows that add to 1;")]
    assert unmarked(text) == ["keep the dtype."]


def test_the_sentences_of_a_homework_are_told_with_their_lines(tiny: Path) -> None:
    homework = write(tiny, "It must be exact.")
    (told,) = sentence_problems(homework)
    line = homework.source.read_text().split("\n")[told.line - 1]
    assert line == "# It must be exact." and "Mark it `{=key}`" in told.remedy
