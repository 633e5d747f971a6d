"""A notebook as one HTML page that needs no network: pictures inside, formulas as MathML."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

# What our formulas use and docutils does not know, in words that it does.
UNKNOWN = ((r"\\dots\b", r"\\ldots"), (r"\\[bB]ig+[lrm]?\b", ""), (r"\\([td]?frac)(\d)(\d)", r"\\\1{\2}{\3}"))


def solution_page(notebook: NotebookNode) -> str:
    """The page, with everything that it shows inside it."""
    exporter = _PageExporter(template_name="lab", embed_images=True)
    exporter.require_js_url = exporter.jquery_url = exporter.mathjax_url = ""
    page, _ = exporter.from_notebook_node(notebook)
    return str(page)


def mathml(formula: str, block: bool = False) -> str:
    """TeX as MathML, which browsers draw by themselves; raises `MathError` where a part of it is not known."""
    for pattern, known in UNKNOWN:
        formula = re.sub(pattern, known, formula)
    return str(tex2mathml(formula, as_block=block))


def _shown(formula: str, block: bool = False) -> str:
    try:
        return mathml(formula.strip(), block)
    except MathError:
        return f'<code class="tex">{escape(formula)}</code>'


class _Renderer(IPythonRenderer):
    """nbconvert's renderer of Markdown, with formulas drawn here and not by a script from the network."""

    def inline_math(self, body: str) -> str:
        """A formula in the line."""
        return _shown(body)

    def block_math(self, body: str) -> str:
        """A formula of its own."""
        return _shown(body, block=True)

    def latex_environment(self, name: str, body: str) -> str:
        """The same without dollar signs."""
        return _shown(rf"\begin{{{name}}}{body}\end{{{name}}}", block=True)


class _PageExporter(HTMLExporter):
    """nbconvert's page with our renderer."""

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """One Markdown cell."""
        return markdown_html(source)


def markdown_html(source: str) -> str:
    """A Markdown text as HTML; a formula that cannot be drawn stands there as it was typed, in `class="tex"`."""
    renderer = _Renderer(escape=False, embed_images=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))
