"""What lateness costs, and who was late: one policy for `autograder grade` and every front end."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo

from autograder.errors import BadInput

DAY = 24 * 60 * 60
ON_TIME, LATE, NOT_KNOWN = "on time", "late", "not known"
_CANVAS_USER = re.compile(r"[^_]+_([0-9]+)")  # how a student of a Canvas export is called here
_OFFSET = re.compile(r"\s+([+-]\d\d):?(\d\d)$")
_ZONE = re.compile(r"\s+([A-Za-z][\w/+-]*)$")


@dataclass(frozen=True)
class LatePolicy:
    """A share of the score per day begun, after a time of grace, up to a most."""

    percent_per_day: float = 10.0
    grace_minutes: float = 15.0
    most_percent: float = 50.0

    def percent(self, seconds_late: float) -> float:
        """The share of a score that is taken off what came in so late."""
        if seconds_late <= self.grace_minutes * 60:
            return 0.0
        return min(self.percent_per_day * math.ceil(seconds_late / DAY), self.most_percent, 100.0)

    def penalty(self, score: float, seconds_late: float) -> float:
        """The points to take off a score that came in so late."""
        return round(score * self.percent(seconds_late) / 100, 2)


@dataclass(frozen=True)
class Extension:
    """A later due date of one student, and why."""

    until: datetime
    reason: str = ""


@dataclass(frozen=True)
class Lateness:
    """When one student handed in, against their own due date."""

    handed: datetime | None = None
    due: datetime | None = None
    extension: Extension | None = None
    marked: bool | None = None  # what the platform says, where it tells no time
    policy: LatePolicy = LatePolicy()

    @property
    def seconds(self) -> float | None:
        """By how much it was late, 0 where it was not; None where nobody knows."""
        if self.handed and self.due:
            return max(0.0, (self.handed - self.due).total_seconds())
        return 0.0 if self.marked is False else None

    @property
    def late(self) -> bool:
        """Whether it was late, so far as is known."""
        return bool(self.marked) if self.seconds is None else self.seconds > 0

    def penalty(self, score: float) -> float:
        """The points to take off; none where nobody knows by how much it was late."""
        return self.policy.penalty(score, self.seconds or 0.0)

    def __str__(self) -> str:
        if self.seconds:
            within = ", within the grace" if not self.policy.percent(self.seconds) and self.policy.grace_minutes else ""
            return f"{LATE} by {lasting(self.seconds)}{within}"
        if self.seconds == 0:
            return ON_TIME
        return LATE if self.marked else NOT_KNOWN if self.due else ""


@dataclass(frozen=True)
class Deadline:
    """When a homework is due and for whom later, what lateness costs, and when students handed in."""

    due: datetime | None = None
    policy: LatePolicy = LatePolicy()
    extensions: Mapping[str, Extension] = field(default_factory=dict)  # by any identifier of a student
    times: Mapping[str, datetime] = field(default_factory=dict)  # the same, from a table: these win

    def of(self, student: str, handed: str = "", marked: bool | None = None) -> Lateness:
        """One student's, given what their platform told with the file."""
        extension = next((self.extensions[key] for key in keys_of(student) if key in self.extensions), None)
        told = next((self.times[key] for key in keys_of(student) if key in self.times), None)
        due = extension.until if extension else self.due
        at = told or (datetime.fromisoformat(handed) if handed else None)
        return Lateness(at, due, extension, marked, self.policy)

    @property
    def last(self) -> datetime | None:
        """When the last student's work is due."""
        dates = [extension.until for extension in self.extensions.values()]
        return max([self.due, *dates]) if self.due else None


def key_of(identifier: str) -> str:
    """An identifier as tables are searched by it: addresses in small letters, all else as it is."""
    plain = identifier.strip()
    return plain.lower() if "@" in plain else plain


def keys_of(student: str) -> list[str]:
    """How a table may name a student: by the id, or by the number that Canvas knows them by."""
    user = _CANVAS_USER.fullmatch(student)
    return [key_of(student), *([user[1]] if user else [])]


def read_date(text: str) -> datetime:
    """A date, to its end, or a date and time, here where no zone is told. Raises `ValueError`."""
    try:
        due = datetime.fromisoformat(text.strip())
        if len(text.strip()) <= len("2026-11-20"):
            due = datetime.combine(due, time.max)
        return due if due.tzinfo else due.astimezone()
    except (OverflowError, OSError):
        raise ValueError(text) from None


def read_due(text: str) -> datetime:
    """The same as somebody typed it; raises `BadInput`."""
    try:
        return read_date(text)
    except ValueError:
        raise BadInput(f"`{text}` is no date. Write 2026-11-20, or 2026-11-20T23:59, for --due.") from None


def read_time(text: str, zone: tzinfo | None = None) -> datetime:
    """A moment as platforms write it; without a zone it is in `zone`, else here. Raises `ValueError`."""
    plain = _OFFSET.sub(r"\1:\2", text.strip())
    if named := _ZONE.search(plain):
        plain = plain[: named.start()]
        try:
            zone = UTC if named[1].upper() in ("UTC", "Z") else ZoneInfo(named[1])
        except Exception:
            raise ValueError(f"no time zone: {named[1]}") from None
    at = datetime.fromisoformat(plain)
    if at.tzinfo:
        return at
    return at.replace(tzinfo=zone) if zone else at.astimezone()


def lasting(seconds: float) -> str:
    """A length of time for people: its two largest parts."""
    minutes = max(1, round(seconds / 60))
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [f"{days} day{'s' * (days != 1)}" * bool(days), f"{hours} h" * bool(hours), f"{rest} min" * bool(rest)]
    return " ".join([part for part in parts if part][:2])
