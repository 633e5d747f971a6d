"""The notebooks as pages: contents that lead somewhere, headings in order, cells that fit a screen, alt texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from nbconvert.filters.markdown import markdown2html
from nbformat import NotebookNode

from autograder.builder.contents import contents_markdown, reading_minutes
from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.builder.page_rules import CODE_LINES, TEXT_LINES, page_problems, screen_lines
from autograder.errors import BadSource, Problem
from autograder.homework import Homework, homework_names, read_homework
from autograder.places import REPOSITORY


@pytest.fixture(scope="module", params=homework_names())
def homework(request: pytest.FixtureRequest) -> Homework:
    return read_homework(request.param)


@pytest.fixture(scope="module")
def page(homework: Homework) -> NotebookNode:
    return student_notebook(homework)


def texts(page: NotebookNode) -> list[str]:
    return [cell.source for cell in page.cells if cell.cell_type == "markdown"]


def headings(page: NotebookNode) -> list[tuple[int, str]]:
    """Level and id of every heading, as nbconvert renders it."""
    html = "\n".join(markdown2html(text) for text in texts(page))
    opened = re.findall(r"<h(\d)([^>]*)>", html)
    return [(int(level), ElementTree.fromstring(f"<h {attributes}/>").attrib["id"]) for level, attributes in opened]


def test_every_link_of_the_contents_leads_to_a_heading(homework: Homework, page: NotebookNode) -> None:
    table = texts(page)[1]
    assert table.startswith("## Contents\n") and "minutes of reading" in table
    links = re.findall(r"\[[^\]]*\]\(#(.*?)\) ?\*{0,2} \|", table)
    there = [anchor for level, anchor in headings(page) if level > 1]
    assert set(links) <= set(there) and len(links) == len(set(links))
    assert len([link for link in links if link[0].isdigit()]) == len(homework.graded)
    assert [link for link in there if link in links] == links, "the contents follow the order of the page"


def test_headings_come_in_order(page: NotebookNode) -> None:
    levels = [level for level, _ in headings(page)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below <= above + 1 for above, below in zip(levels, levels[1:], strict=False))
    anchors = [anchor for _, anchor in headings(page)]
    assert len(anchors) == len(set(anchors))


def test_it_opens_with_abilities_and_closes_with_what_to_read(page: NotebookNode) -> None:
    first, last = texts(page)[0], texts(page)[-1]
    _, _, abilities = first.partition("**When you are done, you will be able to**")
    assert abilities.count("\n- ") >= 5 and "**What you need**" in abilities
    assert last.startswith("## What to read next\n")
    assert len(re.findall(r"\]\(https://[^)\s]+\)", last)) >= 6
    assert "Before you hand in" in last


def test_no_cell_is_longer_than_a_screen(page: NotebookNode) -> None:
    folded = [cell for cell in page.cells if cell.metadata.get("jupyter", {}).get("source_hidden")]
    for cell in page.cells:
        if cell.cell_type == "markdown":
            assert screen_lines(cell.source) <= TEXT_LINES, f"{screen_lines(cell.source)} lines: {cell.source[:60]!r}"
        elif cell not in folded:
            assert cell.source.count("\n") < CODE_LINES, f"{cell.source.count(chr(10))} lines: {cell.source[:60]!r}"


def test_what_is_given_is_folded_away(homework: Homework, page: NotebookNode) -> None:
    given = [cell.source for cell in homework.cells if "given" in cell.metadata]
    folded = [cell.source for cell in page.cells if cell.metadata.get("jupyter", {}).get("source_hidden")]
    assert folded == given


def test_each_question_has_statement_answer_check_and_help(homework: Homework, page: NotebookNode) -> None:
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in page.cells]
    for question in homework.questions:
        place = ids.index(question.id)
        statement = next(i for i, cell in enumerate(page.cells) if f"*`{question.id}` · " in cell.source)
        others = [one for one in ids[statement:place] if one]
        assert statement < place and not others, question.id
        written = "\n".join(cell.source for cell in page.cells[statement:place] if cell.cell_type == "markdown")
        assert re.search(r"\bWrite\b|^- `", written, re.MULTILINE), f"{question.id} does not say what to write"
        assert all(f"`{name}" in written for name in question.names), question.id
        assert ids[place + 1] == f"test_{question.id}"
        assert page.cells[place + 2].source.startswith("<details><summary>Something looks wrong?")
    for asked in homework.explanations:
        assert f"*`{asked.id}` · " in page.cells[ids.index(asked.id) - 1].source


def test_every_picture_has_an_alt_text(page: NotebookNode) -> None:
    for cell in page.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"!\[\s*\]\(|<img(?![^>]*\balt=['\"][^'\"])", cell.source), cell.source[:60]
            continue
        for call in (node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "plots":
                alt = [keyword.value for keyword in call.keywords if keyword.arg == "alt"]
                told = ast.unparse(alt[0]) if alt else ""
                assert len(told) > 30, f"{ast.unparse(call.func)} has no telling alt text: {told}"
        assert not re.search(r"\bplt\.(plot|show|imshow|figure|subplots)\b", cell.source), "use course_utils.plots"


def test_staff_read_the_same_contents(homework: Homework, page: NotebookNode) -> None:
    assert texts(solution_notebook(homework))[1] == texts(page)[1]


def course(tiny: Path, words: int = 0, heading: str = "Half") -> Homework:
    """The tiny homework with a contents cell, so many words more, and another heading of its second question."""
    path = tiny / "solutions" / "hw9_tiny.py"
    text = path.read_text().replace("# ## Twice", "# ### Twice").replace("# ## Half", f"# ### {heading}")
    more = " ".join(["word"] * words)
    cells = f"# %% [markdown] contents=true\n# here\n\n# %% [markdown]\n# ## Part I\n# {more}\n\n# %%\nimport torch"
    path.write_text(text.replace("# %%\nimport torch", cells))
    return read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")


def test_times_are_computed(tiny: Path) -> None:
    homework = course(tiny, words=2_980)
    assert reading_minutes(homework) == 15
    told = contents_markdown(homework)
    assert "about 15 minutes of reading" in told and "10 minutes of work for all 2 questions (100 points)" in told
    assert "| **[Part I](#Part-I)** | **100** | **10** |" in told
    assert "| [9.2 Half](#9.2-Half) | 40 | 5 |" in told


@pytest.mark.parametrize(("heading", "words"), [("Half of $x$", "plain letters"), ("`half`", "plain letters")])
def test_a_heading_that_no_link_reaches_is_told_with_its_line(tiny: Path, heading: str, words: str) -> None:
    with pytest.raises(BadSource) as caught:
        contents_markdown(course(tiny, heading=heading))
    problem = caught.value.problems[0]
    assert words in problem.what and f"# ### {heading}" == problem.path.read_text().splitlines()[problem.line - 1]


def test_two_equal_headings_are_told(tiny: Path) -> None:
    homework = course(tiny)
    path = tiny / "solutions" / "hw9_tiny.py"
    path.write_text(path.read_text() + "\n# %% [markdown]\n# ### 9.1 Twice\n")
    with pytest.raises(BadSource, match="two headings are '9.1 Twice'"):
        contents_markdown(read_homework(homework.name, tiny / "solutions", tiny / "autograder" / "suites"))


def test_no_homework_breaks_a_rule_of_the_page(homework: Homework) -> None:
    assert [str(problem) for problem in page_problems(homework)] == []


OPENING = """# %% [markdown] summary="two sums"
# # A tiny homework
#
# **When you are done, you will be able to**
#
# - double;
# - halve;
# - add;
# - divide;
# - stop.
#
# **What you need**: nothing.

# %% [markdown] contents=true
# here

# %% [markdown] card=true
# here

# %% [markdown]
# ## Part I
"""
CLOSING = """
# %% [markdown]
# ## What to read next
#
# - [*One*](https://a.org/1), [*two*](https://a.org/2), [*three*](https://a.org/3).
# - [*Four*](https://a.org/4), [*five*](https://a.org/5), [*six*](https://a.org/6).
#
# Before you hand in, run everything once more.
"""


def good_page(tiny: Path) -> str:
    """The source of the tiny homework as a page that breaks no rule."""
    text = (tiny / "solutions" / "hw9_tiny.py").read_text()
    text = text.replace("# %% [markdown]\n# # A tiny homework\n", OPENING).replace("# ## Twice", "# ### Twice")
    text = text.replace("# ## Half", "# ### Half").replace("Return twice", "Write `twice(x)`: return twice")
    return text.replace("Return half", "Write `half(x)`: return half") + CLOSING


def problems_of(tiny: Path, text: str) -> list[Problem]:
    (tiny / "solutions" / "hw9_tiny.py").write_text(text)
    homework = read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")
    return list(page_problems(homework))


def test_a_good_page_has_no_problem(tiny: Path) -> None:
    assert problems_of(tiny, good_page(tiny)) == []


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("# - stop.\n", "", "# %% [markdown] summary=", "opens with 4 abilities, fewer than 5"),
        ("**What you need**", "By the way", "# %% [markdown] summary=", "does not say what one needs"),
        (' summary="two sums"', "", "# %% [markdown]\n# # A tiny", "no summary for the table"),
        (" contents=true", "", "# %% [markdown] summary=", "the contents do not follow"),
        (" card=true", "", "# %% [markdown] summary=", "the convention card is nowhere"),
        ("What to read next", "The end", "# %% [markdown]\n# ## The end", "the last text is not `## What to read"),
        ("https://a.org/6", "page", "# %% [markdown]\n# ## What", "has 5 links, fewer than 6"),
        ("Before you hand in", "Now", "# %% [markdown]\n# ## What", "nobody is told to run everything"),
        ("# ## Part I\n", "# # Part I\n", "# # Part I", "is of level 1"),
        ("# ## Part I\n", "#\n", "# ### Twice", "leaves out a level, from 1 to 3"),
        ("import torch\n", "import torch\n" + "x = 1\n" * 46, "# %%\nimport", "takes 47 lines, more than the 46"),
        ("# - stop.\n", "# - stop.\n" + "# - go.\n" * 40, "# %% [markdown] summary=", "more than the 36 of a"),
        ("# ## Part I\n", "# ## Part I\n#\n# ![](a.png)\n", "# ![](a.png)", "a picture has no alt text"),
        ("import torch\n", "import torch\nplots.bars(1)\n", "plots.bars", "`plots.bars` has no telling alt text"),
        ("import torch\n", "import torch\nplt.show()\n", "plt.show", "`plt.show` draws a picture without alt"),
        ("Write `half(x)`: return", "Return", '# %% [markdown] question="q9_2"', "does not say what to write"),
        ("Write `half(x)`: return", "Write it: ", '# %% [markdown] question="q9_2"', "does not name `half`"),
        ("# ## Part I\n", "# ## Part I\n#\n# ### `x`\n", "# ### `x`", "more than plain letters"),
    ],
)
def test_a_broken_rule_is_told_with_line_and_remedy(tiny: Path, old: str, new: str, place: str, words: str) -> None:
    text = good_page(tiny)
    assert old in text
    text = text.replace(old, new, 1)
    told = [problem for problem in problems_of(tiny, text) if words in problem.what]
    assert len(told) == 1, told
    assert told[0].line == text[: text.index(place)].count("\n") + 1 and told[0].remedy


def test_text_answer_and_help_stand_together(tiny: Path) -> None:
    source = good_page(tiny)
    _, text, answer, _ = re.split(r"^(?=# %%.*q9_1)", source, flags=re.MULTILINE)
    moved = source.replace(answer, answer + "# %%\ny = 1\n\n")
    assert any("the help of q9_1 does not stand right below" in problem.what for problem in problems_of(tiny, moved))
    swapped = source.replace(text, "").replace(CLOSING, "\n" + text + CLOSING)
    assert any("the text of q9_1 does not stand right above" in problem.what for problem in problems_of(tiny, swapped))


def test_build_tells_what_would_be_better_and_builds(tiny: Path, commands: Callable[..., Any]) -> None:
    told = commands(tiny)("autograder", "build")
    assert told.code == 0 and (tiny / "assignments" / "hw9_tiny" / "hw9_tiny.ipynb").is_file()
    assert "Warning: solutions/hw9_tiny.py:1: the page opens with 0 abilities, fewer than 5. List them" in told.out
    (tiny / "solutions" / "hw9_tiny.py").write_text(good_page(tiny))
    assert "Warning" not in commands(tiny)("autograder", "build").out


def test_a_course_that_asks_for_it_is_refused_a_page_that_breaks_a_rule_but_not_a_draft(
    tiny: Path, commands: Callable[..., Any]
) -> None:
    (tiny / "course.toml").write_text((REPOSITORY / "course.toml").read_text())
    run = commands(tiny)
    for arguments in (["build"], ["build", "--check"]):
        told = run("autograder", *arguments)
        assert told.code == 2 and not (tiny / "assignments").exists()
        assert "solutions/hw9_tiny.py:1: the page opens with 0 abilities, fewer than 5. List them" in told.err
    draft = run("autograder", "build", "--draft")
    assert draft.code == 0 and "MISSING solutions/hw9_tiny.py:1: the page opens with 0 abilities" in draft.out
    (tiny / "solutions" / "hw9_tiny.py").write_text(good_page(tiny))
    told = run("autograder", "build")
    assert told.code == 0 and "Warning" not in told.out, told.out + told.err
