"""The catalogue of a question: known mistakes and right variants, one percent cell each.

The cell's title is the label; its first statement is a string: the hint that a student reads (mistakes), or what is
different (variants). What follows is code, pasted below the reference's answer, that redefines what differs; or an
edit of that answer, `replace("softmax(scores, dim=-1)", "softmax(scores, dim=-2)")`. Edits apply one after another, and
each old text must be there exactly once. Other code in such a cell stands below the edited answer.

A mistake has a price, the share of the question's points that this one misconception costs where it explains all that
failed: `# %% wrong-axis price=0.3`. An answer that is none costs 1.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import BadSource, Problem
from autograder.percent import PercentCell, read_percent

PRICE, LEAST_PRICE = 0.4, 0.05  # of a mistake that says nothing else; and of any: no wrong answer keeps all points
LABEL = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Entry:
    """One known answer to a question, wrong or right."""

    question: str
    label: str
    text: str
    source: str  # what is pasted below the reference's answer
    path: Path
    line: int
    price: float = PRICE  # of a mistake: LEAST_PRICE to 1


def read_catalogue(path: Path, question: str, answer: str) -> list[Entry]:
    """The entries of one catalogue file; `answer` is the reference's, without markers, which edits change.

    Raises `BadSource` with every problem found.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    for cell in read_percent(path):
        if cell.kind != "code":
            continue
        try:
            text = ast.get_docstring(ast.parse(cell.source))
        except SyntaxError as error:
            line = cell.line + (error.lineno or 1)
            problems.append(Problem(path, line, f"not valid Python ({error.msg}).", "Mend the code of this cell."))
            continue
        if not LABEL.fullmatch(cell.title):
            problems.append(Problem(path, cell.line, "the cell has no label.", "Write `# %% a-label` above it."))
        elif any(entry.label == cell.title for entry in entries):
            problems.append(Problem(path, cell.line, f"the label `{cell.title}` is taken.", "Choose another one."))
        elif trouble := _header_trouble(cell):
            problems.append(Problem(path, cell.line, *trouble))
        elif text is None:
            remedy = "Begin it with a string: the hint, or what is different."
            problems.append(Problem(path, cell.line, f"`{cell.title}` does not say what it is.", remedy))
        else:
            try:
                source = _pasted(path, cell, answer)
            except BadSource as error:
                problems += error.problems
            else:
                price = float(cell.metadata.get("price", PRICE))
                entries.append(Entry(question, cell.title, " ".join(text.split()), source, path, cell.line, price))
    if problems:
        raise BadSource(problems)
    return entries


def _header_trouble(cell: PercentCell) -> tuple[str, str] | None:
    """What is wrong with what stands beside a label, and what to do."""
    if unknown := sorted(cell.metadata.keys() - {"price"}):
        return f"`{cell.title}` has `{unknown[0]}=`, which means nothing here.", "Take it out; a mistake has `price=`."
    price = cell.metadata.get("price", PRICE)
    if isinstance(price, bool) or not isinstance(price, int | float) or not LEAST_PRICE <= price <= 1:
        remedy = f"Write the share of the points that it costs: {LEAST_PRICE} to 1."
        return f"`{cell.title}` has the price {price!r}.", remedy
    return None


def _pasted(path: Path, cell: PercentCell, answer: str) -> str:
    """A cell's code as it stands; or the edited answer, and below it the code that is no edit."""
    tree = ast.parse(cell.source)
    edits = [call for node in tree.body if (call := _edit(node))]
    if not edits:
        return cell.source
    edited = answer
    for call in edits:
        edited = _edited(edited, call, path, cell.line + call.lineno)
    line = cell.line + edits[0].lineno
    try:
        changed = ast.dump(ast.parse(edited)) != ast.dump(ast.parse(answer))
    except SyntaxError as error:
        what = f"the edited answer is not valid Python ({error.msg}): `{(error.text or '').strip()}`."
        raise BadSource([Problem(path, line, what, "Mind the indentation and the brackets of the new text.")]) from None
    if not changed:
        what = f"the edits of `{cell.title}` change nothing."
        raise BadSource([Problem(path, line, what, "Write what is different.")])
    taken = {line for node in tree.body if node is tree.body[0] or _edit(node) for line in _lines(node)}
    code = "\n".join(text for line, text in enumerate(cell.source.split("\n"), 1) if line not in taken).strip("\n")
    return f"{edited}\n\n\n{code}" if code else edited


def _lines(node: ast.stmt) -> range:
    """The lines on which a statement stands."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _edit(node: ast.stmt) -> ast.Call | None:
    """The call in a statement `replace(...)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    return call if isinstance(call, ast.Call) and ast.unparse(call.func) == "replace" else None


def _edited(source: str, call: ast.Call, path: Path, line: int) -> str:
    """The source after one edit, or `BadSource` where the edit does not fit."""
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if len(texts) != 2 or len(call.args) != 2 or call.keywords or not texts[0]:
        remedy = 'Write `replace("text of the answer", "what stands there instead")`.'
        raise BadSource([Problem(path, line, "`replace` takes two strings.", remedy)])
    old, new = texts
    if (count := source.count(old)) != 1:
        first, *more = old.strip().split("\n")
        times = f"{count} times" if count else "not"
        what = f"the text to replace is {times} in the answer: `{first}{' ...' if more else ''}`."
        remedy = "Name a part of the answer cell, as it stands without solution markers, that is there exactly once."
        raise BadSource([Problem(path, line, what, remedy)])
    return source.replace(old, new)
