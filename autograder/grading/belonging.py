"""Whose a submission certainly is: a record of a student is replaced by nothing else.

Names inside a folder or zip can be anybody's doing; the source is the teacher's. So a record may be replaced from the
source that it was made from (or from a folder around that), and the folder or zip of one student inside that source is
this student's, whatever it holds. From elsewhere students are added, and none is replaced unless the teacher says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from autograder.errors import BadInput
from autograder.grading.journal import Outcome
from autograder.grading.task import Task

ARCHIVES = (".zip", ".ipynb", ".py")


def located(outcomes: Mapping[str, Outcome], out: Path) -> dict[str, Outcome]:
    """The outcomes with their sources as full paths; the journal tells them from where it stands itself."""
    at = out.resolve()

    def full(outcome: Outcome) -> Outcome:
        return replace(outcome, source=os.path.normpath(at / outcome.source)) if outcome.source else outcome

    return {student: full(outcome) for student, outcome in outcomes.items()}


def owner_of(source: Path, outcomes: Mapping[str, Outcome], replacing: bool = False) -> str | None:
    """The one student whose own place within a graded source this is; None where it is no such place."""
    place = source.resolve()
    around = [outcome for outcome in outcomes.values() if _within(place, outcome.source)]
    if not around or replacing:
        return None
    inside = [outcome.student for outcome in outcomes.values() if _stands_in(outcome, place)]
    if len(inside) == 1:
        return inside[0]
    graded = around[0].source
    raise BadInput(
        f"{source} lies in {graded}, which was graded into the same --out, and it is not one student's there. "
        f"Nothing is written. Give {graded} (and --only STUDENT), or another --out."
    )


def check(tasks: list[Task], outcomes: Mapping[str, Outcome], source: Path, out: Path) -> None:
    """Raises `BadInput` where a task would replace a record that is not certainly of the same student."""
    foreign = [task.student for task in tasks if not _may_replace(task, outcomes.get(task.student), source)]
    if foreign:
        named = ", ".join(foreign[:10]) + " ..." * (len(foreign) > 10)
        origins = sorted({outcomes[student].source or "an older run" for student in foreign})
        raise BadInput(
            f"{source} has files by the names of students who are graded in {out} from elsewhere ({origins[0]}): "
            f"{named}. Nothing is written: a name inside a folder or zip does not tell whose it is. Grade the source "
            "that they came from, choose another --out, or give --replace if this is their new work."
        )


def origin(old: Outcome | None, source: Path, out: Path, certain: bool) -> str:
    """What a record says about where it came from; a copy of the same file elsewhere changes nothing."""
    if old is None or certain or _covers(source, old.source):
        return os.path.relpath(source.resolve(), out.resolve())
    return os.path.relpath(old.source, out.resolve()) if old.source else ""


def _may_replace(task: Task, old: Outcome | None, source: Path) -> bool:
    return old is None or old.digest == task.digest or _covers(source, old.source)


def _covers(source: Path, graded: str) -> bool:
    """Whether a record's source is this one, or lies in it."""
    return bool(graded) and Path(graded).is_relative_to(source.resolve())


def _within(place: Path, graded: str) -> bool:
    """Whether a place lies inside what was graded, and is not all of it."""
    return bool(graded) and place != Path(graded) and place.is_relative_to(graded)


def _stands_in(outcome: Outcome, place: Path) -> bool:
    """Whether the file of a record stands in a place, zips taken as folders."""
    file = _bare(Path(outcome.source) / outcome.path)
    return bool(outcome.source) and _bare(place) in (file, *file.parents)


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in ARCHIVES else path
