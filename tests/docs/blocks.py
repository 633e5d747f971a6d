"""The commands of a guide: in fenced blocks of language `console`, `$ ` begins one, and below stands its output."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"<!-- not run: *(.*?) *-->$")
EXITS = re.compile(r"# exits with (\d+)")
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
    """One fenced block; `reason` says why it is not run, where it is not."""

    line: int
    reason: str | None
    commands: list[Command] = field(default_factory=list)


def read_blocks(path: Path) -> list[Block]:
    """The `console` blocks of a guide; raises `ValueError` where commands stand in another form."""
    blocks: list[Block] = []
    inside, above = "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence and not inside:
            inside = fence[1] or "text"
            if inside == "console":
                mark = MARK.match(above)
                blocks.append(Block(number, mark[1] if mark else None))
        elif fence:
            inside = ""
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
    """The first shown line that the output does not have, in order; numbers may differ, `...` stands for anything."""
    lines = iter(_plain(line) for line in said.splitlines())
    for line in shown:
        if line.strip() in ("", "..."):
            continue
        pattern = ".*".join(re.escape(part) for part in _plain(line).split("..."))
        if not any(re.search(pattern, found) for found in lines):
            return line
    return None


def _plain(line: str) -> str:
    """A line without its numbers and its spacing: the class of the test is smaller than the guide's."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "0", line)).strip()
