"""The catalogue of a question: known mistakes and right variants, one percent cell each.

A cell is pasted below the reference's answer and redefines what differs. Its title is the label; its first statement
is a string: the hint that a student reads (mistakes), or what is different (variants).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import BadSource, Problem
from autograder.percent import read_percent

LABEL = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Entry:
    """One known answer to a question, wrong or right."""

    question: str
    label: str
    text: str
    source: str
    path: Path
    line: int


def read_catalogue(path: Path, question: str) -> list[Entry]:
    """The entries of one catalogue file; raises `BadSource` with every problem found."""
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
        elif text is None:
            remedy = "Begin it with a string: the hint, or what is different."
            problems.append(Problem(path, cell.line, f"`{cell.title}` does not say what it is.", remedy))
        else:
            entries.append(Entry(question, cell.title, " ".join(text.split()), cell.source, path, cell.line))
    if problems:
        raise BadSource(problems)
    return entries
