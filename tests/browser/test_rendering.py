"""The notebooks as pages, in the real JupyterLab: formulas, hints, tables, links and pictures."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from autograder.homework import Homework

TROUBLE = (Path(__file__).parent / "trouble.js").read_text()
ALL_RENDERED = """n => n === [...document.querySelectorAll('.jp-Notebook .jp-MarkdownCell .jp-RenderedMarkdown')]
    .filter(text => text.childElementCount > 0).length"""
PRESS_TWICE = """hints => hints.map(hint => {
    const seen = () => hint.open && hint.querySelector('summary ~ *').getClientRects().length > 0
    const states = [seen()]
    for (const press of [1, 2]) { hint.querySelector('summary').click(); states.push(seen()) }
    return states
})"""
BROKEN = {
    "a formula is not rendered": r"one dollar $x",
    "MathJax says": r"a parenthesis too few: $\left( x$",
    "MathJax says: ": r"a command of nobody: $\nosuch$",
    "markdown is left over": "<div>**a blank line is missing**</div>",
    "leads nowhere": "[over there](#Nowhere)",
    "a picture does not show": "![a lost picture](lost.png)",
    "a picture has no alt text": "![](dot.png)",
}


def trouble(page) -> list[str]:
    """What is wrong with the page, once MathJax has had its time and the pictures are there."""
    from playwright.sync_api import TimeoutError

    texts = sum(cell.cell_type == "markdown" for cell in page.notebook.cells)
    page.view.wait_for_function(ALL_RENDERED, arg=texts)
    try:
        page.view.wait_for_function(f"() => ({TROUBLE})().length === 0", timeout=10_000, polling=200)
    except TimeoutError:
        return page.view.evaluate(TROUBLE)
    return []


def count(page, selector: str) -> int:
    """How many of these stand in the rendered texts."""
    return page.view.locator(f".jp-Notebook .jp-RenderedMarkdown {selector}").count()


def test_formulas_tables_links_and_pictures_are_rendered(homework: Homework, opened) -> None:
    assert trouble(opened) == []
    texts = [cell.source for cell in opened.notebook.cells if cell.cell_type == "markdown"]
    formulas = sum(len(re.findall(r"\$\$.+?\$\$|\$[^$]+\$", without_code(text), re.DOTALL)) for text in texts)
    assert count(opened, "mjx-container") == formulas > 20
    assert count(opened, "table") == sum(len(re.findall(r"^\|[ :|-]+\|$", text, re.MULTILINE)) for text in texts) > 0


def test_every_hint_opens_and_closes(homework: Homework, opened) -> None:
    hints = opened.view.locator(".jp-Notebook .jp-RenderedMarkdown details")
    assert hints.count() >= 3 * len(homework.questions)
    assert hints.evaluate_all(PRESS_TWICE) == [[False, True, False]] * hints.count()
    first, text = hints.first.locator("summary"), hints.first.locator("summary ~ *").first
    first.click()
    assert text.is_visible()
    first.press("Enter")
    assert not text.is_visible()


def test_pictures_show_and_are_described(homework: Homework, lab, run_release) -> None:
    folder = lab.root / f"{homework.name}_executed"
    folder.mkdir()
    path = folder / f"{homework.name}.ipynb"
    nbformat.write(run_release(homework.name, solved=True), path)
    page = lab.open(path)
    assert trouble(page) == []
    assert page.view.locator(".jp-Notebook .jp-OutputArea img").count() >= 10
    page.close()


def test_what_is_wrong_with_a_page_is_found(lab) -> None:
    from course_utils import plots  # brings torch

    cells = [nbformat.v4.new_markdown_cell(text) for text in [*BROKEN.values(), "# Fine\n\n$x^2$, [up](#Fine)"]]
    path = lab.root / "broken.ipynb"
    (lab.root / "dot.png").write_bytes(plots.heatmap([[1.0]], alt="a dot").png)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    page = lab.open(path)
    told = trouble(page)
    for position, what in enumerate(BROKEN):
        assert any(line.startswith(f"cell {position}: ") and what in line for line in told), (what, told)
    assert not [line for line in told if line.startswith(f"cell {len(BROKEN)}: ")]
    page.close()


def without_code(text: str) -> str:
    """A text without what is set as code."""
    return re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
