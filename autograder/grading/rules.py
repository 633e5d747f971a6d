"""The dates of a homework and what lateness costs, as a teacher said them: kept beside the journal for later commands.

`rules.json` holds what was given as options, `extensions.csv` who may hand in later, `times.csv` when students handed
in, where no platform tells it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.errors import BadInput
from autograder.grading.late import Deadline, Extension, LatePolicy, key_of, read_date, read_due, read_time
from autograder.grading.levels import level_by
from autograder.grading.tables import delimiter_of

RULES, EXTENSIONS, TIMES = "rules.json", "extensions.csv", "times.csv"
STUDENT = ("student_id", "student", "id", "sis login id", "sis user id", "sid", "email", "name")
HANDED_IN = ("handed_in", "submitted_at", "submission time", "timestamp", "time", "submitted")

Row = Mapping[str, str]


@dataclass(frozen=True)
class Rules:
    """What was said; None where nothing was."""

    due: str | None = None
    closes: str | None = None  # nobody hands in after it: then feedback on hidden cases is full
    feedback: str | None = None
    percent_per_day: float | None = None
    grace_minutes: float | None = None
    most_percent: float | None = None
    extensions: Path | None = None  # a table to take over
    times: Path | None = None

    def over(self, kept: Rules) -> Rules:
        """These rules, and what they leave open as it was kept; a new date undoes a level that was wished for."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        if self.feedback is None and (self.due or self.closes):
            kept = replace(kept, feedback=None)
        return replace(kept, **told)

    def deadline(self, out: Path, known: Deadline | None = None) -> Deadline:
        """The rules with their tables; what is not said is as another place knows it, a gradebook."""
        known = known or Deadline()
        policy = {name: getattr(self, name) for name in LatePolicy.__dataclass_fields__}
        for name, value in policy.items():
            if value is not None and value < 0:
                raise BadInput(f"What lateness costs cannot be negative: {value:g} ({name}).")
        extensions = _table(self.extensions or out / EXTENSIONS, self.extensions is not None, ("until",), _extension)
        times = _table(self.times or out / TIMES, self.times is not None, HANDED_IN, _time)
        return Deadline(
            read_due(self.due) if self.due else known.due,
            replace(known.policy, **{name: value for name, value in policy.items() if value is not None}),
            {**known.extensions, **extensions},
            times,
        )

    def level(self, deadline: Deadline) -> str:
        """How much pages tell of hidden cases."""
        return level_by(self.feedback, read_due(self.closes) if self.closes else deadline.last)

    def files(self, out: Path) -> dict[Path, bytes]:
        """What is to be kept beside the journal; nothing where nothing was said."""
        said = {name: value for name, value in asdict(self).items() if value is not None and name not in TABLES}
        kept = {out / RULES: (json.dumps(said, indent=1) + "\n").encode()} if said else {}
        for name, path in ((EXTENSIONS, self.extensions), (TIMES, self.times)):
            if path is not None:
                kept[out / name] = path.read_bytes()
        return kept


TABLES = ("extensions", "times")


def read_rules(out: Path) -> Rules:
    """What is kept in a folder of results."""
    path = out / RULES
    if not path.is_file():
        return Rules()
    try:
        told = json.loads(path.read_text())
        return Rules(**{name: value for name, value in told.items() if name in Rules.__dataclass_fields__})
    except (ValueError, AttributeError):
        raise BadInput(f"{path} cannot be read. Delete it, and give --due and what else it held again.") from None


def _table(path: Path, wanted: bool, columns: tuple[str, ...], read: Callable[[str, Row], Any]) -> dict[str, Any]:
    """What a table says, by every identifier in a row; raises `BadInput` with the line of what cannot be read."""
    if not path.is_file():
        if wanted:
            raise BadInput(f"There is no table at {path}.")
        return {}
    text = path.read_bytes().decode("utf-8-sig", "replace")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), restval="")
    names = {name.strip().lower(): name for name in reader.fieldnames or () if name}
    column = next((names[name] for name in columns if name in names), None)
    who = [names[name] for name in STUDENT if name in names]
    if column is None or not who:
        needed = f"`student_id` and `{columns[0]}`"
        raise BadInput(f"{path}:1: these columns are needed: {needed}. It has: {', '.join(names) or 'none'}.")
    found: dict[str, Any] = {}
    for row in reader:
        told = row[column].strip()
        if told:
            try:
                value = read(told, {name: row[real] or "" for name, real in names.items()})
            except ValueError:
                raise BadInput(f"{path}:{reader.line_num}: `{told}` is no date and time.") from None
            found |= {key_of(row[name]): value for name in who if (row[name] or "").strip()}
    return found


def _extension(told: str, row: Row) -> Extension:
    return Extension(read_date(told), row.get("reason", "").strip())


def _time(told: str, _: Row) -> datetime:
    return read_time(told)
