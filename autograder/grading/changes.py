"""Whose score changes: the grades as they were last written, against what they would be now."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRADES = "grades.csv"
OTHER_COLUMNS = ("student_id", "penalty", "final", "handed_in", "late", "outdated", "status")

Table = dict[str, dict[str, str]]  # student -> column of grades.csv -> what stands there


@dataclass(frozen=True)
class Change:
    """One student whose grades differ: question (or "total") -> before and after, None where there was no score."""

    student: str
    scores: Mapping[str, tuple[float | None, float | None]]

    def __str__(self) -> str:
        told = (f"{name}: {_shown(before)} -> {_shown(after)}" for name, (before, after) in self.scores.items())
        return f"{self.student}  {', '.join(told)}"

    def to_json(self) -> dict[str, Any]:
        """The change as plain data."""
        return {"student": self.student, "scores": {name: list(pair) for name, pair in self.scores.items()}}


def written_grades(out: Path) -> Table:
    """`grades.csv` as it stands in a folder of results; empty where there is none."""
    path = out / GRADES
    if not path.is_file():
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        return read_grades(file.read())


def read_grades(text: str) -> Table:
    """The rows of a `grades.csv` by student."""
    return {row["student_id"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def score_changes(before: Table, after: Table) -> list[Change]:
    """Every student whose scores differ, with the questions that do and the total."""
    found = []
    for student in sorted(after):
        old, new = before.get(student, {}), after[student]
        columns = [name for name in new if name not in OTHER_COLUMNS]
        scores = {name: (_score(old.get(name, "")), _score(new[name])) for name in columns}
        total = scores["total"]
        final = _score(old.get("final") or old.get("total", "")), _score(new.get("final") or new["total"])
        last = {"total": total} | ({"final": final} if final != total else {})  # told where lateness costs anything
        differing = {name: pair for name, pair in (scores | last).items() if pair[0] != pair[1]}
        if differing:
            found.append(Change(student, {name: pair for name, pair in differing.items() if name not in last} | last))
    return found


def told(changes: list[Change]) -> str:
    """The changes as lines for a person."""
    return "\n".join(["Score changes:", *(f"  {change}" for change in changes)]) if changes else "No score changes."


def _score(text: str) -> float | None:
    return float(text) if text else None


def _shown(score: float | None) -> str:
    return "none" if score is None else f"{score:g}"
