"""What `autograder verify` has proved, kept in `autograder/suites/<hw>/proved.json`: unchanged questions need no proof.

The file is committed, a line per question. It holds digests and counts, no times and nothing of a machine, so it
changes only where a suite does. What missed anything is never in it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from autograder.builder.notebooks import student_cells
from autograder.digests import digest_of, module_meaning, question_digest, told_entries
from autograder.failing import PROVED, failing_digest
from autograder.homework import Homework
from autograder.places import PACKAGE, shown
from autograder.write import write

VERSION = 2
COUNTS = ("cases", "mistakes", "caught", "named", "variants", "kept")


@dataclass(frozen=True)
class Row:
    """One line of the table: how a question's suite treats its mistakes and right variants."""

    question: str
    points: float
    cases: int
    mistakes: int
    caught: int
    named: int
    variants: int
    kept: int
    seconds: float | None  # None: not run now, proved before
    unseen: tuple[str, ...] = ()  # mistakes that pass all public checks
    fails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by mistake, the cases that it fails

    @property
    def public(self) -> int:
        """How many mistakes fail a public check."""
        return self.mistakes - len(self.unseen)


def recall(homework: Homework, questions: Collection[str] | None = None) -> tuple[dict[str, Row], str]:
    """The rows of the questions, or of all, that are unchanged since they were proved; what is wrong with the file."""
    try:
        known = _read(homework.suite / PROVED)
    except (OSError, ValueError, TypeError, KeyError) as error:
        told = f"{shown(homework.suite / PROVED)} is of no use ({error}): everything is proved anew, and written there."
        return {}, told
    rows = {}
    for question in homework.questions:
        entry = known.get(question.id) if questions is None or question.id in questions else None
        if entry and entry["proof"] == proof_digest(homework, question.id):
            counts = {name: entry[name] for name in COUNTS}
            fails = {label: tuple(cases) for label, cases in entry["fails"].items()}
            row = Row(question.id, question.points, **counts, seconds=None)
            rows[question.id] = replace(row, unseen=tuple(entry["unseen"]), fails=fails)
    return rows, ""


def remember(homework: Homework, question: str, row: Row | None) -> str:
    """Keep a question's row, or None where it missed something; gives back why that cannot be, if so."""
    path = homework.suite / PROVED
    try:
        with _alone(homework.suite):
            try:
                known = _read(path)
            except (OSError, ValueError, TypeError, KeyError):
                known = {}
            known.pop(question, None)
            if row is not None:
                digests = {"proof": proof_digest(homework, question), "facts": failing_digest(homework, question)}
                lists = {"unseen": list(row.unseen), "fails": {label: list(row.fails[label]) for label in row.fails}}
                known[question] = digests | {count: getattr(row, count) for count in COUNTS} | lists
            if known or path.exists():
                write({path: _text(homework, known).encode()}, [])
    except OSError as error:
        return f"{shown(path)} cannot be written ({error.strerror}): what was proved is not remembered."
    return ""


def proof_digest(homework: Homework, question: str) -> str:
    """A hash of everything on which a question's row depends."""
    stubs = _stubs(homework)
    uses = homework.question(question).uses
    tests = module_meaning(homework.public_file(question), homework.hidden_file(question))  # with their weights
    return digest_of(
        question_digest(homework, question),
        tests,
        told_entries(homework.variants[question]),
        [(stubs[part], told_entries(homework.mistakes[part][:1])) for part in (question, *uses)],
        module_meaning(PACKAGE / "verify.py"),
    )[:32]


@cache
def _stubs(homework: Homework) -> dict[str, str]:
    return {cell.id: cell.source for cell in student_cells(homework, solved=False)}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The entries by question; raises what a file that is none raises."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["version"] != VERSION:
        raise ValueError(f"its version is {data['version']}, not {VERSION}")
    for entry in data["questions"].values():
        counted = isinstance(entry["proof"], str) and all(isinstance(entry[name], int) for name in COUNTS)
        if not counted or not isinstance(entry["unseen"], list) or not isinstance(entry["fails"], dict):
            raise ValueError("an entry is none of verify's")
    return dict(data["questions"])


def _text(homework: Homework, known: Mapping[str, Mapping[str, Any]]) -> str:
    """The file, a line per question in the order of the homework; questions that it no longer has are left out."""
    ids = [question.id for question in homework.questions if question.id in known]
    lines = ",\n".join(f"  {json.dumps(question)}: {json.dumps(known[question])}" for question in ids)
    return f'{{\n "version": {VERSION},\n "questions": {{\n{lines}\n }}\n}}\n'


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process reads and writes the file meanwhile."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
