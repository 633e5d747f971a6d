"""Which of a student's notebooks is graded: of the newest attempt the one that answers most.

An attempt is known by the number or time that a platform or a folder's name gives it. One in which nothing is answered
is none. What is not taken is named, with the reason.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from autograder.assumptions import Assumption, listed
from autograder.homework import Homework, read_homework
from autograder.submission import BadSubmission, parse_submission

Attempt = tuple[int, ...]  # numbers to be compared in turn; empty where there is only one attempt

NOTEBOOK = ".ipynb"
DISGUISED = re.compile(r"\.ipynb\.(txt|json)$", re.IGNORECASE)
COMPARED = 12  # notebooks of one student that are read; who hands in more is told
LONGEST = 100  # digits that are read of a number
MOMENT = 2.0  # seconds by which times must differ to mean anything: copies of a folder are made in less
COPY = re.compile(r"( ?\(\d+\)|-\d+)$")  # what a browser or a platform adds to a name that is there already
FOLDER = re.compile(r"(?:attempt|submission|try|version|v)?[ _-]*(\d[\dT:. _-]*)Z?", re.IGNORECASE)
_DIGITS = re.compile(r"(\d+)")


def kind_of(path: PurePosixPath) -> str:
    """The kind of a file by its ending, in small letters; browsers save a notebook as .ipynb.txt or .ipynb.json too."""
    return NOTEBOOK if DISGUISED.search(path.name) else path.suffix.lower()


class HandedFile(Protocol):
    """A file that a student handed in."""

    @property
    def inside(self) -> PurePosixPath:
        """Its path in what was handed in."""

    @property
    def attempt(self) -> Attempt:
        """The number or time of the attempt that it belongs to."""

    @property
    def series(self) -> str:
        """Files of different attempts are compared where this is the same."""

    @property
    def time(self) -> float:
        """When it was last changed."""

    def read(self) -> bytes:
        """Its content."""


@dataclass(frozen=True)
class Looked:
    """A file that could be graded, and what is in it."""

    file: HandedFile
    answers: int = 0
    trouble: str = ""  # why it cannot be graded
    digest: str = ""  # of its content

    @property
    def told(self) -> str:
        """The file's name and what it answers."""
        answers = f"answers {self.answers}" if self.answers else "answers nothing"
        return f"{_shown(self.file)} ({self.trouble or answers})"


def choose(files: Sequence[HandedFile], homework: Homework | str) -> tuple[int, list[Assumption]]:
    """The number of the file to grade, and what was assumed; nothing has to be read where there is but one."""
    if len(files) == 1:
        return 0, []
    name = homework if isinstance(homework, str) else homework.name
    ranked = sorted(files, key=lambda file: _rank(file, name), reverse=True)
    asked = read_homework(homework) if isinstance(homework, str) else homework
    looked = [_look(file, asked) for file in ranked[:COMPARED]]
    newest = [one for one in looked if one.file.attempt == _newest(looked, one.file.series)]
    best = _best(newest, name)
    others = [one for one in looked if one is not best and (not one.digest or one.digest != best.digest)]
    older = [one.told for one in others if one not in newest]
    beside = [one.told for one in others if one in newest]
    unread = [f"{_shown(file)} (not looked at)" for file in ranked[COMPARED:]]
    shown, assumed = _shown(best.file), []
    if older:
        untouched = any(one.file.attempt > best.file.attempt for one in others if one not in newest)
        told = f"{shown} was graded, your newest attempt{' that answers anything' * untouched}."
        assumed.append(Assumption("attempt", told, listed(older), shown))
    if beside or unread:
        reason = "the one that answers most" if best.answers else "none of them answers anything"
        told = f"{shown} was graded of {len(beside) + len(unread) + 1} notebooks, {reason}"
        told += f" ({best.answers} answers)." if best.answers else "."
        assumed.append(Assumption("notebook", told, listed([*beside, *unread]), shown))
    return next(number for number, file in enumerate(files) if file is best.file), assumed


def attempt_in(path: PurePosixPath, below: PurePosixPath) -> Attempt:
    """The attempt that the names of the folders around a file tell: `attempt_10`, `2026-11-20T23-59`, or nothing."""
    for part in path.parts[len(below.parts) : -1]:
        if found := FOLDER.fullmatch(part):
            return numbers(found[1])
    return ()


def numbers(text: str) -> Attempt:
    """The numbers in a text, to be compared as numbers."""
    return tuple(int(found[:LONGEST]) for found in _DIGITS.findall(text))


def _look(file: HandedFile, homework: Homework) -> Looked:
    try:
        content = file.read()
    except Exception as error:  # whatever keeps a file from being read, another one may be graded
        return Looked(file, trouble=str(error))
    try:
        submission = parse_submission(content, kind_of(file.inside), homework)
    except BadSubmission as error:
        return Looked(file, trouble=error.status, digest=hashlib.sha256(content).hexdigest())
    return Looked(file, submission.answers, digest=submission.digest)


def _newest(looked: Iterable[Looked], series: str) -> Attempt:
    """The newest attempt in which anything is answered, else the newest."""
    alike = [one for one in looked if one.file.series == series]
    answered = [one.file.attempt for one in alike if one.answers]
    return max(answered or [one.file.attempt for one in alike])


def _best(looked: Sequence[Looked], homework: str) -> Looked:
    """What answers most; of equals the newest attempt, a notebook, what can be read, the newest file, the best name."""

    def key(one: Looked) -> tuple[object, ...]:
        return one.answers, one.file.attempt, kind_of(one.file.inside) == NOTEBOOK, not one.trouble

    best = max(map(key, looked))
    equals = [one for one in looked if key(one) == best]
    latest = max(one.file.time for one in equals)
    fresh = [one for one in equals if latest - one.file.time < MOMENT]
    return max(fresh, key=lambda one: _rank(one.file, homework))


def _rank(file: HandedFile, homework: str) -> tuple[object, ...]:
    """Named after the homework, notebooks before scripts, outer ones first, else by name; numbers as numbers."""
    inside = file.inside
    named = homework in inside.stem, kind_of(inside) == NOTEBOOK, homework in (inside.stem, *inside.parts)
    pieces = _DIGITS.split(str(inside))
    natural = tuple((text, *numbers(number)) for text, number in zip(pieces[::2], [*pieces[1::2], ""], strict=True))
    return *named, file.attempt, -len(inside.parts), natural


def _shown(file: HandedFile) -> str:
    name = str(file.inside)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
