"""The commands of a guide: in fenced blocks of language `console`, `$ ` begins one, and below stands its output.

A block below `<!-- file PATH -->` or `<!-- cells of PATH -->` is what the reader writes there (see filling.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"<!-- not run: *(.*?) *-->$")
WRITTEN = re.compile(r"<!-- (?:file|cells of) \S+.* -->$")
EXITS = re.compile(r"# exits with (\d+)")
CHANGE = re.compile(r"(q\d+_\d+|total): (none|[\d.]+) -> (\d+(?:\.\d+)?)")
OLD_FORM = re.compile(r"^ {4}(\.venv/bin/|(autograder|course|nbgrader|otter|make|jupyter) )")


@dataclass
class Command:
    """One command as it stands in a guide, and the output that is shown below it."""

    line: int
    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The exit code that the guide promises: 0, or what `# exits with 1` says."""
        found = EXITS.search(self.text)
        return int(found[1]) if found else 0


@dataclass
class Block:
    """One fenced block: commands (`reason` says why they are not run, where they are not), or text to be written."""

    line: int
    reason: str | None
    commands: list[Command] = field(default_factory=list)
    into: str = ""  # the mark that says where the text belongs
    text: str = ""


def read_blocks(path: Path) -> list[Block]:
    """The blocks of a guide to run or to write; raises `ValueError` where commands stand in another form."""
    blocks: list[Block] = []
    inside, above = "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence and not inside:
            inside = fence[1] or "text"
            if inside == "console":
                mark = MARK.match(above)
                blocks.append(Block(number, mark[1] if mark else None))
            elif WRITTEN.match(above):
                inside = "written"
                blocks.append(Block(number, None, into=above))
        elif fence:
            inside = ""
        elif inside == "written":
            blocks[-1].text += f"{line}\n"
        elif inside == "console":
            _read_line(path, blocks[-1], number, line)
        elif not inside and OLD_FORM.match(line):
            raise ValueError(f"{path.name}:{number}: commands belong into a block of language console, after `$ `")
        if line.strip():
            above = line.strip()
    return blocks


def _read_line(path: Path, block: Block, number: int, line: str) -> None:
    if line.startswith("$ "):
        block.commands.append(Command(number, line[2:].strip()))
    elif block.commands and block.commands[-1].text.endswith("\\"):
        block.commands[-1].text = block.commands[-1].text[:-1] + line.strip()
    elif block.commands:
        block.commands[-1].shown.append(line)
    else:
        raise ValueError(f"{path.name}:{number}: a console block begins with a command, `$ ...`")


def missing_line(shown: list[str], said: str) -> str | None:
    """The first shown line that the output does not have, in order; `...` stands for anything.

    Numbers may differ, for the class of the test is smaller than the guide's; not so a question's own score, which is
    the same in both.
    """
    lines = iter(said.splitlines())
    for line in shown:
        if line.strip() in ("", "..."):
            continue
        pattern = ".*".join(re.escape(part) for part in _plain(line).split("..."))
        if not any(re.search(pattern, _plain(found)) and _scores(line) <= _scores(found) for found in lines):
            return line
    return None


def _scores(line: str) -> set[tuple[str, ...]]:
    """What a line says about the scores of questions: `q1_7: 1.74 -> 3`."""
    return set(re.findall(r"\b(q\d+_\d+): (none|[\d.]+) -> (none|\d+(?:\.\d+)?)", line))


def uneven(line: str) -> bool:
    """Whether a line of score changes does not add up: the total changes by as much as its questions do."""
    changes = [(name, 0.0 if old == "none" else float(old), float(new)) for name, old, new in CHANGE.findall(line)]
    total = sum(new - old for name, old, new in changes if name == "total")
    return any(name == "total" for name, *_ in changes) and abs(
        total - sum(new - old for name, old, new in changes if name.startswith("q"))
    ) > 0.005  # fmt: skip


def _plain(line: str) -> str:
    """A line without its numbers and its spacing: the class of the test is smaller than the guide's."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "0", line)).strip()
