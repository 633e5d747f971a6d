"""The tables that are written for spreadsheets: whatever students wrote stays in its cell, and is never computed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

FORMULA = (*"=+-@\uff1d\uff0b\uff0d\uff20", "\t", "\n")  # what a spreadsheet would compute, or skip to find a formula
LINE_BREAK = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


def delimiter_of(text: str, known: str = ",;") -> str:
    """What separates the cells of a table that a spreadsheet wrote: the one of `known` that its first line has most."""
    return max(known, key=text.partition("\n")[0].count)


def csv_text(rows: Iterable[Sequence[object]], delimiter: str = ",", quote_all: bool = False) -> str:
    """The rows as a CSV file; a line may break inside a cell, but only in one way, which every reader knows."""
    buffer = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    table = csv.writer(buffer, delimiter=delimiter, lineterminator="\n", quoting=quoting)  # type: ignore[arg-type]
    table.writerows([_one_way(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def named(students: list[str], most: int = 10) -> str:
    """The first few names, so that no comma in one confuses, and how many more there are."""
    return "; ".join(students[:most]) + (f"; and {len(students) - most} more" if len(students) > most else "")


def inert(cell: object) -> object:
    """A cell that others than we have written, as no formula; numbers stay numbers."""
    text = _one_way(cell)
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) and not _is_number(text) else text


def _one_way(cell: object) -> object:
    return LINE_BREAK.sub("\n", cell) if isinstance(cell, str) else cell


def _is_number(text: str) -> bool:
    try:
        return bool(text.strip()) and float(text) == float(text)
    except ValueError:
        return False
