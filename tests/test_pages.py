"""The notebooks as pages: contents that lead somewhere, headings in order, cells that fit a screen, alt texts."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from nbconvert.filters.markdown import markdown2html
from nbformat import NotebookNode

from autograder.builder.contents import contents_markdown, reading_minutes
from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.errors import BadSource
from autograder.homework import Homework, homework_names, read_homework

CODE_LINES = 46  # at 1440 x 900 JupyterLab shows 779 pixels of a notebook: 17 a line of code
TEXT_LINES = 36  # and some 20 a line of text with the space around it
LINE = 110  # characters in a line of text there


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


def screen_lines(text: str) -> int:
    """About how many lines a text takes on the page, its folded parts closed."""
    lines = 0.0
    for block in re.split(r"\n\s*\n", re.sub(r"<details>.*?</details>", "folded", text, flags=re.DOTALL)):
        if block.startswith(("|", "```")):
            parts = block.split("\n")
        else:
            parts = re.split(r"\n(?=- |\d+\. )", block)
        lines += 0.7 + sum(math.ceil(len(re.sub(r"\]\([^)]*\)", "]", part)) / LINE) for part in parts)
    return round(lines)


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
    text = path.read_text().replace("# ## 9.1 ", "# ### 9.1 ").replace("# ## 9.2 Half", f"# ### 9.2 {heading}")
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
    assert words in problem.what and f"# ### 9.2 {heading}" == problem.path.read_text().splitlines()[problem.line - 1]


def test_two_equal_headings_are_told(tiny: Path) -> None:
    homework = course(tiny)
    path = tiny / "solutions" / "hw9_tiny.py"
    path.write_text(path.read_text().replace("# ### 9.2 Half", "# ### 9.1 Twice"))
    with pytest.raises(BadSource, match="two headings are '9.1 Twice'"):
        contents_markdown(read_homework(homework.name, tiny / "solutions", tiny / "autograder" / "suites"))
