"""`docs/sources.md`: what the course grew out of, item by item, and where each item is met.

The items stand in `docs/sources.toml`, a few words each. In a homework's source the header of a question's text, or of
one in words, says which it meets, `sources="000/0.1-a 002/1.2-qkv"`; a text that only tells an item says
`told="001/1.3-b: reason; 002/2.4-why: another reason"`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import BadInput, Problem
from autograder.numbers import HEADING, numbers, spelt
from autograder.percent import PercentCell, read_percent
from autograder.requirements import without_marks
from autograder.write import Files

LIST, PAGE = Path("docs/sources.toml"), Path("docs/sources.md")
BY_CODE, IN_WORDS, TOLD = "by code", "in words", "told"


@dataclass(frozen=True)
class Met:
    """One place at which an item is met."""

    item: str
    how: str  # BY_CODE, IN_WORDS or TOLD
    homework: str
    where: str  # a question's id, or the heading under which it is told
    reason: str
    path: Path
    line: int


def source_files(course: Path, solutions: Path) -> Files:
    """The page as it should be; nothing where the course has no list of items."""
    listed = _listed(course)
    return {course / PAGE: _page(*listed, list(met_in(solutions))).encode()} if listed else {}


def missing_items(course: Path, solutions: Path) -> list[str]:
    """The items that no cell meets or tells."""
    listed = _listed(course)
    found = {met.item for met in met_in(solutions)} if listed else set()
    return [item for item in listed[1] if item not in found] if listed else []


def source_problems(course: Path, solutions: Path) -> Iterator[Problem]:
    """Headers that name no item, or stand at a cell that can meet none."""
    listed = _listed(course)
    for path in sorted(solutions.glob("hw*.py")):
        for cell in read_percent(path):
            asks = cell.kind == "markdown" and {"question", "explain"} & cell.metadata.keys()
            if "sources" in cell.metadata and not asks:
                what = "`sources` stands at a cell that asks nothing."
                yield Problem(path, cell.line, what, "Put it at the text of the question, or write `told=`.", path.stem)
            if "told" in cell.metadata and cell.kind != "markdown":
                what = "`told` stands at a code cell."
                yield Problem(path, cell.line, what, "Put it at the text that tells it.", path.stem)
    for met in met_in(solutions):
        if listed and met.item not in listed[1]:
            what = f"`{met.item}` is no item of {LIST}."
            yield Problem(met.path, met.line, what, "Correct the id, or add it there.", met.homework)


def untold_reasons(solutions: Path) -> Iterator[Problem]:
    """Items that are told, asked nowhere, and without a word on why."""
    met = list(met_in(solutions))
    asked = {one.item for one in met if one.how != TOLD}
    for one in met:
        if one.how == TOLD and not one.reason and one.item not in asked:
            what = f"`{one.item}` is only told, and nothing says why it is not asked."
            yield Problem(one.path, one.line, what, f'Write `told="{one.item}: reason"`.', one.homework)


def met_in(solutions: Path) -> Iterator[Met]:
    """Every item that a cell of the sources meets or tells, in the order of the page."""
    order = numbers(solutions)
    for path in sorted(solutions.glob("hw*.py")):
        heading = ""
        for cell in read_percent(path):
            for found in HEADING.finditer(cell.source) if cell.kind == "markdown" else ():
                heading = spelt(without_marks(found[3]), order).strip()
            yield from _met(path, cell, heading)


def _met(path: Path, cell: PercentCell, heading: str) -> Iterator[Met]:
    asked = str(cell.metadata.get("question") or cell.metadata.get("explain") or "")
    how = IN_WORDS if "explain" in cell.metadata else BY_CODE
    for item in str(cell.metadata.get("sources", "")).split():
        yield Met(item, how, path.stem, asked or heading, "", path, cell.line)
    for part in str(cell.metadata.get("told", "")).split(";"):
        items, _, reason = part.partition(":")
        for item in items.split():
            yield Met(item, TOLD, path.stem, asked or heading, reason.strip(), path, cell.line)


def _listed(course: Path) -> tuple[Mapping[str, str], Mapping[str, str]] | None:
    """The collections and the items of the list, or None where there is none."""
    path = course / LIST
    if not path.is_file():
        return None
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
        return dict(told["collections"]), dict(told["items"])
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: not a list of sources ({error}). It has two tables, collections and items.") from None


def _page(collections: Mapping[str, str], items: Mapping[str, str], met: list[Met]) -> str:
    by_item = {item: [one for one in met if one.item == item] for item in items}
    counts = {how: sum(how in {m.how for m in ones} for ones in by_item.values()) for how in (BY_CODE, IN_WORDS)}
    told = sum(bool(ones) and all(m.how == TOLD for m in ones) for ones in by_item.values())
    missing = sum(not ones for ones in by_item.values())
    lines = [
        "<!-- Written by `autograder build` from docs/sources.toml and the headers in solutions/: do not edit. -->",
        "",
        "# What the course grew out of",
        "",
        f"Five collections of exercises and solutions in print, {len(items)} items: problems, claims, formulas and "
        "listings, many of them wrong there. Here each stands in a few words of ours, with the question that asks it. "
        f"{counts[BY_CODE]} are graded by code, {counts[IN_WORDS]} in words, {told} are only told, for a reason"
        + (f", and {missing} are missing." if missing else "."),
    ]
    for collection, about in collections.items():
        lines += ["", f"## {collection}: {about}", "", "| item | what it is | where | how |", "|---|---|---|---|"]
        for item, words in items.items():
            if item.startswith(f"{collection}/"):
                lines.append(f"| `{item}` | {words} | {_where(by_item[item])} | {_how(by_item[item])} |")
    return "\n".join(lines) + "\n"


def _where(met: list[Met]) -> str:
    return "; ".join(dict.fromkeys(f"{one.homework.partition('_')[0]} {one.where}" for one in met)) or "missing"


def _how(met: list[Met]) -> str:
    ways = [way for way in (BY_CODE, IN_WORDS) if way in {one.how for one in met}]
    if ways:
        return "graded " + " and ".join(ways)
    reasons = dict.fromkeys(one.reason for one in met if one.reason)
    return f"told: {'; '.join(reasons)}" if reasons else "told" if met else ""
