"""Read a notebook file as plain cells, without trusting anything in it, and tell what its code defines."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from course_utils.terminal.definitions import defined_names, stub_names
from course_utils.terminal.magics import as_python, count_magics, split_measures
from course_utils.terminal.refusals import Refusal

MAX_BYTES = 32 * 2**20  # what the graders read of one file
QUESTION = re.compile(r"q(\d+)_\d+")
HOMEWORK = re.compile(r"hw\d+_[a-z0-9_]+")
CHECK = "test_"  # the id of a check cell is this and its question's id
TEXT_STUB = "YOUR ANSWER HERE"


@dataclass(frozen=True)
class Cell:
    """One cell as it stands in the file."""

    position: int  # from 1, all kinds counted
    kind: str
    source: str
    id: str = ""  # of a question, or of its check
    tags: frozenset[str] = frozenset()
    points: float = 0
    minutes: float = 0

    @property
    def place(self) -> str:
        """How a student finds the cell: its number, and its question or its first line."""
        first = next((line.strip() for line in self.source.splitlines() if line.strip()), "")
        return f"cell {self.position} ({self.id or repr(first[:40])})"

    @cached_property
    def parsed(self) -> ast.Module | str:
        """The cell's code, magics taken as the graders take them; or what is wrong with it."""
        top, body = split_measures(self.source)
        code = "\n" * top.count("\n") + body
        try:
            with warnings.catch_warnings(action="ignore"):
                return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return _plain_python(code) or _told(error, self.source)

    @property
    def statements(self) -> list[ast.stmt]:
        """The cell's statements; none where it is no Python."""
        return [] if isinstance(self.parsed, str) else self.parsed.body

    @property
    def defines(self) -> tuple[str, ...]:
        """The public names that the cell defines at its top level."""
        return defined_names(self.statements)

    @property
    def stubs(self) -> set[str]:
        """The definitions that still raise the course's NotImplementedError."""
        return stub_names(self.statements)


@dataclass(frozen=True)
class Notebook:
    """A notebook's cells, and the homework that it says it is of."""

    homework: str
    cells: tuple[Cell, ...]

    def with_id(self, wanted: str) -> list[Cell]:
        """The cells that carry this id; more than one where a student has copied a cell."""
        return [cell for cell in self.cells if cell.id == wanted]


def read_notebook(path: Path) -> Notebook:
    """The notebook in a file; raises `Refusal`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Refusal(
                f"{path} is larger than {MAX_BYTES // 2**20} MB, more than the graders read. In Jupyter choose "
                "Edit > Clear Outputs of All Cells, and save."
            )
        raw = path.read_bytes()
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror or error}.") from None
    return parse_notebook(raw, str(path))


def parse_notebook(raw: bytes, shown: str) -> Notebook:
    """The same from the file's bytes."""
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise Refusal(
            f"{shown} is not a notebook that can be read ({error}). Open it in Jupyter and save it again, "
            "or go back to a copy of yours that opens."
        ) from None
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise Refusal(f"{shown} has no list of cells: it is no notebook of Jupyter's current format (nbformat 4).")
    named = _dict(_dict(data.get("metadata")).get("otter")).get("assignment_name")
    homework = named if isinstance(named, str) and HOMEWORK.fullmatch(named) else ""
    return Notebook(homework, tuple(_cell(i, _dict(cell)) for i, cell in enumerate(cells, 1)))


def _cell(position: int, cell: Mapping[str, Any]) -> Cell:
    metadata = _dict(cell.get("metadata"))
    nbgrader, course = _dict(metadata.get("nbgrader")), _dict(metadata.get("course"))
    source, tags, grade_id = cell.get("source", ""), metadata.get("tags"), nbgrader.get("grade_id")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    return Cell(
        position=position,
        kind=str(cell.get("cell_type", "")),
        source=source if isinstance(source, str) else "",
        id=grade_id if isinstance(grade_id, str) else "",
        tags=frozenset(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else frozenset(),
        points=_number(nbgrader.get("points")),
        minutes=_number(course.get("minutes")),
    )


def _plain_python(code: str) -> ast.Module | None:
    """The cell after IPython has made calls of its magics and shell lines; None where that does not help."""
    if not count_magics(code):
        return None
    try:
        return ast.parse(as_python(code))
    except Exception:  # the plain error is the one to tell
        return None


def _told(error: BaseException, source: str) -> str:
    if not isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error}"
    lines = source.splitlines()
    line = lines[error.lineno - 1].strip() if error.lineno and error.lineno <= len(lines) else ""
    return f"{type(error).__name__}: {error.msg} (line {error.lineno}{f': {line}' if line else ''})"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
