"""What was assumed: every decision about a submission that is not certain is a fact, told to student and teacher.

Whoever decides makes an `Assumption`; it goes into the journal with the submission's other facts, onto the student's
page, and into the one list that a run prints, the report shows on top and `summary.json` holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

KINDS = {  # kind -> what the list says where there are many; the first are the ones to look at first
    "other homework": "handed in another homework: 0 points",
    "unreadable": "handed in nothing that can be graded: 0 points",
    "missing": "on the roster, handed in nothing",
    "roster": "graded, but not on the roster",
    "late": "late, nobody knows by how much: nothing is taken off (--times FILE tells it)",
    "time": "when they handed in is not known: nothing is taken off for lateness (--times FILE tells it)",
    "student": "whose work it is follows from a file's name that could be another's",
    "by hand": "rows of by_hand.csv that count for nobody",
    "comment": "comments in by_hand.csv without a score",
    "attempt": "of several attempts the newest was graded",
    "notebook": "of several notebooks the one that answers most was graded",
    "misnamed": "an answer under another name was not graded",
    "renamed": "an answer under another name was graded",
    "duplicate": "of several answer cells with one id the last was graded",
    "elsewhere": "an answer was taken from another cell than its own",
    "text": "free text was taken from a cell beside its own",
    "cell": "cells that could not be run as they stand",
    "files": "files that were not read",
}
FILES = ("unreadable", "student", "attempt", "notebook", "files")  # kinds about where a submission was found
PRIVATE = ("student",)  # kinds in which what was not taken is another student
FEW = 3  # assumptions of one kind that are told one by one


@dataclass(frozen=True)
class Assumption:
    """One decision that is not certain."""

    kind: str  # one of KINDS
    assumed: str  # a sentence, for the student too
    not_taken: str = ""  # what could have been meant instead
    where: str = ""  # the file, the cell or the row
    student: str = ""  # empty where it is about nobody in particular

    def __str__(self) -> str:
        return f"{self.assumed} Not taken: {self.not_taken}." if self.not_taken else self.assumed

    @property
    def for_student(self) -> Assumption:
        """The same without what only the teacher may read."""
        return replace(self, not_taken="") if self.kind in PRIVATE else self

    def to_json(self) -> dict[str, Any]:
        """The assumption as plain data."""
        return asdict(self)


def in_order(assumptions: Iterable[Assumption]) -> list[Assumption]:
    """By kind, those to look at first at the beginning, then by student."""
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(assumptions, key=lambda one: (order[one.kind], one.student, one.where, one.assumed))


def by_kind(assumptions: Iterable[Assumption]) -> dict[str, list[Assumption]]:
    """The assumptions of each kind that there is."""
    found: dict[str, list[Assumption]] = {}
    for one in in_order(assumptions):
        found.setdefault(one.kind, []).append(one)
    return found


def told(assumptions: Iterable[Assumption], everything: str) -> str:
    """The list "What was assumed" for a terminal, many of one kind in one line; `everything`: where all of them are."""
    groups = by_kind(assumptions)
    if not groups:
        return "What was assumed: nothing."
    lines = [f"What was assumed (all of it: {everything}):"]
    for kind, found in groups.items():
        if len(found) <= FEW:
            lines += [f"  {one.student}: {one}" if one.student else f"  {one}" for one in found]
        else:
            students = list(dict.fromkeys(one.student for one in found if one.student))
            who = ", ".join(students[:FEW]) + (f" and {len(students) - FEW} more" if len(students) > FEW else "")
            lines.append(f"  {len(found)} times: {KINDS[kind]}{f' ({who})' if who else ''}")
    return "\n".join(lines)


def listed(names: Iterable[str], most: int = 5) -> str:
    """Some names in a row, and how many more there are."""
    found = list(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
