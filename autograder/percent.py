"""Read jupytext percent files into cells that remember the line they start on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.errors import BadSource, Problem

HEADER = re.compile(r"^# %%( |$)")
NOT_THE_AUTHORS = {"title", "lines_to_next_cell", "cell_marker"}  # what jupytext notes for itself


@dataclass(frozen=True)
class PercentCell:
    """One cell of a percent file; `line` is where its `# %%` header stands."""

    kind: str  # "code" or "markdown"
    source: str
    line: int
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def read_percent(path: Path) -> list[PercentCell]:
    """The cells of a percent file, or `BadSource` where it cannot be read as one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadSource(
            [Problem(path, 1, "the file does not exist.", "Write it or remove what refers to it.")]
        ) from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise BadSource([Problem(path, line, "not UTF-8 text.", "Save the file as UTF-8.")]) from None
    headers = [number for number, line in enumerate(text.splitlines(), 1) if HEADER.match(line)]
    if not headers:
        raise BadSource([Problem(path, 1, "no `# %%` cell in it.", "Write it in jupytext's percent format.")])
    cells = _cells(text)
    if len(cells) != len(headers):
        raise BadSource([Problem(path, 1, "text stands before the first `# %%` cell.", "Put it into a cell.")])
    return [
        PercentCell(
            kind=cell.cell_type,
            source=cell.source,
            line=line,
            title=cell.metadata.get("title", ""),
            metadata={key: value for key, value in cell.metadata.items() if key not in NOT_THE_AUTHORS},
        )
        for cell, line in zip(cells, headers, strict=True)
    ]


@lru_cache(maxsize=256)
def _cells(text: str) -> Sequence[Any]:
    """jupytext's reading of a text, which takes a while: a command reads the same files more than once."""
    import jupytext  # half a second, and many commands read no source

    cells: list[Any] = jupytext.reads(text, fmt="py:percent").cells
    return tuple(cells)
