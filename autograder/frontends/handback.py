"""`autograder handback`: every student's page where they get it, a folder or zip each, or as Canvas takes feedback.

Canvas takes a zip of files that are named as those it gave out, and attaches each to the submission in its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from autograder.builder.release import zip_bytes
from autograder.errors import BadInput
from autograder.grading.changes import written_grades
from autograder.grading.collect import CANVAS
from autograder.grading.journal import JOURNAL, Outcome, homework_of, known
from autograder.grading.outputs import page_names
from autograder.write import Files, write

Layout = Callable[[Outcome, str, bytes], dict[str, bytes]]  # a page as files, by their paths; none where it cannot be


@dataclass
class HandedBack:
    """What was written, and who got nothing."""

    path: Path
    students: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def handback(results: Path, to: Path, layout: str = "folders") -> HandedBack:
    """Write every student's page below a folder, or into one zip where `to` ends in .zip."""
    homework = homework_of(results)
    done = HandedBack(to)
    files: dict[str, bytes] = {}
    pages = page_names(written_grades(results))
    for student, outcome in sorted(known(results / JOURNAL, homework).items()):
        page = results / "feedback" / f"{pages.get(student, student)}.html"
        found = LAYOUTS[layout](outcome, homework, page.read_bytes()) if page.is_file() else {}
        (done.students if found else done.without).append(student)
        files |= found
    if not files:
        raise BadInput(f"No page of {results} can be handed back as {layout}. Did these files come from Canvas?")
    if to.suffix.lower() == ".zip":
        write({to: zip_bytes(files)}, [])
    else:
        written: Files = {to / name: content for name, content in files.items()}
        write(written, [])
    return done


def _folder(outcome: Outcome, homework: str, page: bytes) -> dict[str, bytes]:
    return {f"{outcome.student}/{homework}-feedback.html": page}


def _zip(outcome: Outcome, homework: str, page: bytes) -> dict[str, bytes]:
    return {f"{outcome.student}.zip": zip_bytes({f"{homework}-feedback.html": page})}


def _canvas(outcome: Outcome, homework: str, page: bytes) -> dict[str, bytes]:
    """Named as the file that Canvas gave out, up to the number of that file."""
    for part in PurePosixPath(outcome.path).parts[:2]:
        if matched := CANVAS.fullmatch(part):
            stem = PurePosixPath(matched["file"]).stem
            return {f"{part[: matched.start('file')]}{stem}-feedback.html": page}
    return {}


LAYOUTS: dict[str, Layout] = {"folders": _folder, "zips": _zip, "canvas": _canvas}
