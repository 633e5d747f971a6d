"""The table of homeworks in README.md, between two marks: written by the build from the first cell of each source."""

from __future__ import annotations

import re
from pathlib import Path

from autograder.percent import read_percent
from autograder.write import Files

BEGIN, END = "<!-- homeworks: written by `autograder build` -->", "<!-- end of homeworks -->"
TITLE = re.compile(r"^# (?:Homework \d+: )?(.+)$", re.MULTILINE)


def readme_files(course: Path) -> Files:
    """README.md with the table as it should be; nothing where the course has none, or none with marks."""
    path = course / "README.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        return {}
    rows = [_row(source) for source in sorted((course / "solutions").glob("hw*.py"))]
    table = "\n".join(["| | | |", "|---|---|---|", *rows])
    return {path: f"{before}{begin}\n{table}\n{end}{after}".encode()}


def _row(source: Path) -> str:
    """A homework's name, its title, and the `summary` of its first cell."""
    first = read_percent(source)[0]
    found = TITLE.search(first.source)
    title = found[1] if found else ""
    if title[1:2].islower() or title[1:2] == " ":
        title = title[0].lower() + title[1:]
    return f"| **{source.stem}** | {title} | {first.metadata.get('summary', '')} |"
