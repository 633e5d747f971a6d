"""Errors that a person must act on: a sentence with what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with a source file, and its remedy; `unfinished` names the question or homework that lacks it.

    What is unfinished may be so in a draft; what is broken may not.
    """

    path: Path
    line: int
    what: str
    remedy: str
    unfinished: str = ""

    def __str__(self) -> str:
        from autograder.places import shown  # which reads course.toml, and tells with `BadInput` where that is broken

        return f"{shown(self.path)}:{self.line}: {self.what} {self.remedy}"


class BadInput(Exception):
    """What the user gave cannot be used; the command prints the text, writes nothing and exits with 2."""


class BadSource(BadInput):
    """A homework's source, suite or catalogue is broken: every problem found, each with its place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(map(str, self.problems)))
