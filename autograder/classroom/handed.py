"""All the code that a student wrote, cell by cell, for the report; and what of it could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from autograder.builder.notebooks import student_cells
from autograder.grading.collect import Handin
from autograder.homework import Homework
from autograder.submission import BadSubmission, read_cells

MOST = 2_000_000  # characters of one submission that are read; short cells first, so that no long one hides them


@dataclass(frozen=True)
class Handed:
    """The cells with code of the student's own, by name, and sentences about what was not read."""

    cells: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it in one piece."""
        return "\n\n".join(self.cells.values())


def handed_in(entry: Handin, homework: Homework) -> Handed:
    """Every cell of code, with or without an id, run or not; those that stand in the homework as they are aside."""
    if entry.content is None:
        return Handed(unread=(f"not read: {entry.problem}",))
    try:
        found = read_cells(entry.content, entry.suffix).cells
    except BadSubmission as error:
        return Handed(unread=(f"not read: {error}",))
    code = [cell for cell in found if cell.kind == "code" and _plain(cell.source) not in _given(homework)]
    left, read = MOST, set()
    for cell in sorted(code, key=lambda cell: len(cell.source)):
        left -= len(cell.source)
        if left >= 0:
            read.add(cell.position)
    long = {cell.position: len(cell.source) for cell in code if cell.position not in read}
    unread = (f"cell {position}: not read, it is {length:,} characters long" for position, length in long.items())
    cells = {f"cell {cell.position}": cell.source for cell in code if cell.position in read}
    return Handed(cells, tuple(unread))


@cache
def _given(homework: Homework) -> frozenset[str]:
    """The code cells of the student notebook as they are handed out, and the empty one."""
    cells = student_cells(homework, solved=False)
    return frozenset(_plain(cell.source) for cell in cells if cell.cell_type == "code") | {""}


def _plain(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines())
