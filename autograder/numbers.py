"""Question numbers, written by the build: `@q1_7` in a text becomes its number, and a question's heading gets its own.

Ids never change; numbers follow the order of the page, so a question that is added in the middle moves those below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from autograder.errors import Problem
from autograder.percent import PercentCell

REFERENCE = re.compile(r"(?<!\w)@q(\d+)_(\d+)\b")
HEADING = re.compile(r"^(#+) (?:(\d+\.\d+) )?(.*)$", re.MULTILINE)
ASKED = re.compile(r"^# %%.* (?:question|explain)=\"(q\d+_\d+)\"", re.MULTILINE)


def numbers(solutions: Path) -> dict[str, str]:
    """The number of every question of all homeworks: of its homework, and its place on that page."""
    found: dict[str, str] = {}
    for path in sorted(solutions.glob("hw*.py")):
        asked = dict.fromkeys(ASKED.findall(path.read_text(encoding="utf-8", errors="replace")))
        found |= {id: f"{id.removeprefix('q').partition('_')[0]}.{place}" for place, id in enumerate(asked, 1)}
    return found


def spelt(text: str, known: Mapping[str, str]) -> str:
    """The text with every `@q1_7` written as its number."""
    return REFERENCE.sub(lambda found: known.get(found[0][1:], f"{found[1]}.{found[2]}"), text)


def numbered(cell: PercentCell, known: Mapping[str, str]) -> PercentCell:
    """A cell as it is read: references spelt, and a question's heading with its number in front."""
    source, asked = spelt(cell.source, known), _asked(cell)
    if asked in known and (found := HEADING.search(source)) and not found[2]:
        source = f"{source[: found.start()]}{found[1]} {known[asked]} {found[3]}{source[found.end() :]}"
    return cell if source == cell.source else replace(cell, source=source)


def number_problems(
    path: Path, name: str, cells: list[PercentCell], known: Mapping[str, str]
) -> Iterator[Problem]:
    """References to questions that no homework has, and headings that say another number than their question's."""
    for cell in cells:
        about = str(_asked(cell) or cell.metadata.get("help") or name)
        for line, text in enumerate(cell.source.split("\n"), cell.line + 1):
            for found in REFERENCE.finditer(text):
                if found[0][1:] not in known:
                    what = f"`{found[0]}` is a question that no homework has."
                    yield Problem(path, line, what, "Correct the id, or write that question.", about)
        asked, heading = _asked(cell), HEADING.search(cell.source)
        if asked and heading and heading[2] not in (None, known.get(asked)):
            line = cell.line + 1 + cell.source[: heading.start()].count("\n")
            what = f"the heading says {heading[2]}, but {asked} is number {known.get(asked)} of the page."
            yield Problem(path, line, what, "Leave the number out: the build writes it.")


def _asked(cell: PercentCell) -> str:
    """The question whose text a cell is."""
    return str(cell.metadata.get("question") or cell.metadata.get("explain") or "") if cell.kind == "markdown" else ""
