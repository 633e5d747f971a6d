"""What all commands share: how they end, whom they tell, and how they are added to the parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from course_utils.terminal.completion import offer
from course_utils.terminal.originals import is_called

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

Tell = Callable[[str], None]  # lines for people: to standard output, with --json to standard error
Commands = Any  # argparse keeps the type of its sub-parsers to itself


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code, and what `--json` prints."""

    code: int = OK
    facts: dict[str, Any] = field(default_factory=dict)


Run = Callable[[argparse.Namespace, Tell], Done]


def command(commands: Commands, name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
    """Add a command with its help, an example and `--json`."""
    parser = group(commands, name, text, example)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, for scripts")
    return parser


def group(commands: Commands, name: str, text: str, example: str) -> argparse.ArgumentParser:
    """Add a word that only has commands below it, such as `nbgrader`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, epilog=f"Example: {example}"
    )
    return parser


def take_homework(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """The homework that a command is about; `several`: any number, all where none is named."""
    text = "default: all" if several else "such as hwN_topic, or hwN"
    action = parser.add_argument("homework", nargs="*" if several else None, type=called, help=text)
    offer(action, lambda: named([]))


def called(name: str) -> str:
    """The homework that `hwN` means; any other name as it is."""
    from autograder.homework import homework_names

    meant = [known for known in homework_names() if is_called(known, name)]
    return meant[0] if len(meant) == 1 else name


def named(given: list[str]) -> list[str]:
    """The homeworks that were named, else all."""
    from autograder.homework import homework_names

    return given or homework_names()
