"""Question numbers, written by the build: `@q1_7` in a text becomes 1.7, and a question's heading gets its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autograder.errors import Problem
from autograder.percent import PercentCell

REFERENCE = re.compile(r"(?<!\w)@q(\d+)_(\d+)\b")
HEADING = re.compile(r"^(#+) (?:(\d+\.\d+) )?(.*)$", re.MULTILINE)
ASKED = re.compile(r"^# %%.* (?:question|explain)=\"(q\d+_\d+)\"", re.MULTILINE)


def spelt(text: str) -> str:
    """The text with every `@q1_7` written as 1.7."""
    return REFERENCE.sub(r"\1.\2", text)


def number(question: str) -> str:
    """The number of a question: 1.7 for q1_7."""
    return question.removeprefix("q").replace("_", ".")


def numbered(cell: PercentCell) -> PercentCell:
    """A cell as it is read: references spelt, and a question's heading with its number in front."""
    source, asked = spelt(cell.source), _asked(cell)
    if asked and (found := HEADING.search(source)) and not found[2]:
        source = f"{source[: found.start()]}{found[1]} {number(asked)} {found[3]}{source[found.end() :]}"
    return cell if source == cell.source else replace(cell, source=source)


def number_problems(path: Path, name: str, cells: list[PercentCell]) -> Iterator[Problem]:
    """References to questions that no homework has, and headings that say another number than their question's."""
    known = _known(path.parent)
    for cell in cells:
        about = str(_asked(cell) or cell.metadata.get("help") or name)
        for line, text in enumerate(cell.source.split("\n"), cell.line + 1):
            for found in REFERENCE.finditer(text):
                if found[0][1:] not in known:
                    what = f"`{found[0]}` is a question that no homework has."
                    yield Problem(path, line, what, "Correct the id, or write that question.", about)
        asked, heading = _asked(cell), HEADING.search(cell.source)
        if asked and heading and heading[2] not in (None, number(asked)):
            line = cell.line + 1 + cell.source[: heading.start()].count("\n")
            what = f"the heading says {heading[2]}, but the question is {asked}."
            yield Problem(path, line, what, "Leave the number out: the build writes it.")


def _asked(cell: PercentCell) -> str:
    """The question whose text a cell is."""
    return str(cell.metadata.get("question") or cell.metadata.get("explain") or "") if cell.kind == "markdown" else ""


def _known(solutions: Path) -> set[str]:
    """The questions of all homeworks."""
    sources = (path.read_text(encoding="utf-8", errors="replace") for path in solutions.glob("hw*.py"))
    return {question for source in sources for question in ASKED.findall(source)}
