"""When a submission was handed in, as its platform tells beside the files; what a student can write tells nothing.

nbgrader writes `timestamp.txt` into a collected submission, Gradescope `submission_metadata.yml` beside all of them.
Canvas tells no time: the names of its files say LATE or nothing.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from autograder.grading.collect import CANVAS, GRADESCOPE, GRADESCOPE_FOLDER, SUBMITTED, Handin
from autograder.grading.late import read_time

STAMP = "timestamp.txt"
NO_YEAR = 1980  # of files in zips that are to be the same whenever they are made
MOST = 16 * 2**20  # bytes of a file with times


@dataclass(frozen=True)
class HandinTime:
    """What is known about the moment: a time, or only whether it was late; nothing of both where nothing is told."""

    at: str = ""  # ISO, with its zone
    late: bool | None = None
    dated: str = ""  # the date that the file itself bears, which proves nothing


def handed_in(source: Path, entries: Sequence[Handin]) -> dict[str, HandinTime]:
    """What the source tells about the moment of every entry, by student."""
    paths = [PurePosixPath(entry.path) for entry in entries]
    around = {path.parts[0] for path in paths if len(path.parts) > 1}
    wrapped = len(paths) > 1 and len(around) == 1 and not around & {SUBMITTED}  # one folder around the class
    with _Source(source) as files:
        return {
            entry.student: _handed(path, int(wrapped), entry.student, files)
            for entry, path in zip(entries, paths, strict=True)
        }


class _Source:
    """The files of a folder or zip, by their path inside."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._zip: zipfile.ZipFile | None = None
        self._gradescope: dict[PurePosixPath, Mapping[str, Any]] = {}

    def __enter__(self) -> _Source:
        if self._source.is_file() and zipfile.is_zipfile(self._source):
            self._zip = zipfile.ZipFile(self._source)
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip is not None:
            self._zip.close()

    def text(self, path: PurePosixPath) -> str:
        """A file's text; empty where there is none that can be read."""
        try:
            if self._zip is not None:
                with self._zip.open(str(path)) as member:
                    return member.read(MOST).decode("utf-8", "replace")
            found = self._place(path)
            return found.read_text(encoding="utf-8", errors="replace") if found.stat().st_size < MOST else ""
        except (OSError, KeyError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
            return ""

    def date(self, path: PurePosixPath) -> str:
        """The date that a file bears, or the zip around it."""
        for place in (path, *path.parents):
            try:
                if self._zip is not None:
                    told = datetime(*self._zip.getinfo(str(place)).date_time)
                    return told.isoformat(" ", "minutes") if told.year > NO_YEAR else ""
                if (found := self._place(place)).is_file():
                    return datetime.fromtimestamp(found.stat().st_mtime).isoformat(" ", "minutes")
            except (KeyError, ValueError, OSError, OverflowError):
                continue
        return ""

    def gradescope(self, top: PurePosixPath) -> Mapping[str, Any]:
        """What Gradescope tells about its submissions, by folder."""
        if top not in self._gradescope:
            try:
                told = yaml.safe_load(io.StringIO(self.text(top / GRADESCOPE)))
            except yaml.YAMLError:
                told = None
            self._gradescope[top] = told if isinstance(told, dict) else {}
        return self._gradescope[top]

    def _place(self, path: PurePosixPath) -> Path:
        if self._source.is_file():
            return self._source if path.name == self._source.name else self._source / "nothing"
        inside = self._source / path
        return self._source.parent / path if not inside.exists() and path.parts[:1] == (SUBMITTED,) else inside


def _handed(path: PurePosixPath, depth: int, student: str, files: _Source) -> HandinTime:
    """By the name that a platform gave to the part of a path at that depth; below it names are the student's own."""
    top, part = PurePosixPath(*path.parts[:depth]), path.parts[depth] if len(path.parts) > depth else ""
    at, late = "", None
    if part == SUBMITTED and len(path.parts) > depth + 3:
        at = _iso(files.text(PurePosixPath(*path.parts[: depth + 3], STAMP)))
    elif part.startswith(GRADESCOPE_FOLDER) and isinstance(record := files.gradescope(top).get(part), dict):
        at = _iso(record.get(":created_at"))
    elif (matched := CANVAS.fullmatch(part)) and f"_{matched['user']}" in student:
        late = part.startswith(f"{matched['name']}_LATE_")
    return HandinTime(at, late, files.date(path))


def _iso(told: object) -> str:
    """A moment as text in the form that the journal has; empty where it is none."""
    try:
        if isinstance(told, datetime):
            return (told if told.tzinfo else told.replace(tzinfo=UTC)).isoformat()
        return read_time(str(told), UTC).isoformat() if told else ""
    except ValueError:
        return ""
