"""Does what a guide tells its reader to write: a file as a whole, or cells of a source.

`<!-- file PATH -->` writes the file. `<!-- cells of PATH -->` writes each cell over the one that has its place in the
source: the same question's text, answer or help; the same heading; the opening; the set-up. With `below q7_1` the cells
are new, and stand where the chapter of that question ends.
"""

from __future__ import annotations

import re
from pathlib import Path

from blocks import Block

MARK = re.compile(r"<!-- (file|cells of) (\S+)(?: below (\w+))? -->")


def fill(course: Path, block: Block) -> None:
    """Write one block where its mark says."""
    found = MARK.fullmatch(block.into)
    assert found, f"line {block.line}: {block.into} is no mark that this knows"
    path = course / found[2]
    assert path.is_file(), f"line {block.line}: {found[2]} is not there yet"
    if found[1] == "file":
        path.write_text(block.text)
        return
    head, *cells = _cells(path.read_text())
    new = [cell for cell in _cells(block.text) if cell]
    if found[3]:
        below = max(i for i, cell in enumerate(cells) if f'"{found[3]}"' in cell.partition("\n")[0])
        end = next(i for i in range(below + 1, len(cells)) if re.search(r"^# ## ", cells[i], re.MULTILINE))
        cells[end:end] = new
    else:
        places = [_place(cell) for cell in cells]
        for cell in new:
            assert places.count(_place(cell)) == 1, f"line {block.line}: where does {_place(cell)} belong?"
            cells[places.index(_place(cell))] = cell
    path.write_text("".join([head, *(cell.rstrip("\n") + "\n\n" for cell in cells)]).rstrip("\n") + "\n")


def _cells(text: str) -> list[str]:
    return re.split(r"^(?=# %%)", text, flags=re.MULTILINE)


def _place(cell: str) -> str:
    """What tells a cell from the others of its source."""
    header, _, body = cell.partition("\n")
    kind = "text" if "[markdown]" in header else "code"
    if asked := re.search(r'(?:question|explain|help)="\w+"', header):
        return f"{kind} {asked[0]}"
    if "summary=" in header:
        return "opening"
    heading = re.match(r"# (##? \w+ \w+)", body)
    return heading[1] if heading else "set-up" if "Grader(" in body else body
