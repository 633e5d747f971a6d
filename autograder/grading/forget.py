"""`autograder forget`: a student's data out of a folder of results, and what of it lies elsewhere."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.errors import BadInput
from autograder.grading.by_hand import BY_HAND
from autograder.grading.changes import GRADES, written_grades
from autograder.grading.journal import JOURNAL, Journal, homework_of, known
from autograder.grading.late import key_of, keys_of
from autograder.grading.outputs import page_names
from autograder.grading.recompute import recompute
from autograder.grading.rules import EXTENSIONS, TIMES
from autograder.grading.say import check_student
from autograder.grading.tables import csv_text, delimiter_of
from autograder.write import write

COMPUTED = (
    "report.html",
    *(f"{to}{kind}.csv" for to in ("canvas", "gradescope", "csv", "nbgrader") for kind in ("", "-unknown")),
)
ELSEWHERE = (
    "a gradebook of nbgrader's (gradebook.db, and judged/, autograded/, feedback/ in its course): use `nbgrader db "
    "student remove`, and this command on judged/<homework>",
    "what was exported, handed back or printed, and what your learning platform holds",
    "copies and backups of this folder",
)


@dataclass
class Forgotten:
    """What was done about a student."""

    student: str
    changed: list[str] = field(default_factory=list)  # files without them now
    removed: list[str] = field(default_factory=list)  # files that are gone
    mentioned: list[str] = field(default_factory=list)  # files in which their id still stands
    elsewhere: list[str] = field(default_factory=list)  # places that this does not reach


def forget(out: Path, student: str, tell: Callable[[str], None] = print) -> Forgotten:
    """Take a student out of journal, pages, grades and sheets; what can be computed again without them is."""
    homework = homework_of(out)
    outcomes = known(out / JOURNAL, homework)
    pages = page_names(written_grades(out))
    check_student(student, {*outcomes, *pages, *_named_in(out / BY_HAND)})
    done = Forgotten(student)
    sources = {outcome.source for outcome in outcomes.values() if outcome.student == student and outcome.source}
    with Journal(out / JOURNAL, homework):  # nobody else writes it meanwhile
        for path in (out / JOURNAL, *sorted(out.glob("regrade*.jsonl"))):
            _without_lines(path, student, done)
    for name in (BY_HAND, EXTENSIONS, TIMES):
        _without_rows(out / name, student, done)
    gone = [out / "feedback" / f"{pages.get(student, student)}{kind}" for kind in (".html", ".json")]
    gone += [out / name for name in COMPUTED]
    left = outcomes.keys() - {student}
    if not left:
        gone += [out / name for name in (JOURNAL, GRADES, "summary.json", BY_HAND)]
    for path in gone:
        if path.is_file():
            path.unlink()
            done.removed.append(path.name)
    if left:
        recompute(out, tell=lambda _: None)
        done.changed.append(GRADES)
    done.mentioned = [str(path.relative_to(out)) for path in sorted(out.rglob("*")) if _mentions(path, student)]
    done.elsewhere = [f"{os.path.normpath(out / source)}: what was handed in" for source in sorted(sources)]
    done.elsewhere += ELSEWHERE
    return done


def _without_lines(path: Path, student: str, done: Forgotten) -> None:
    """A journal without a student's records, and without a word about them in those of the class."""
    lines = path.read_bytes().splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith(b"\n")]
    for record in records:
        if record["type"] == "class":
            record["missing"] = [name for name in record["missing"] if name != student]
            record["assumptions"] = [one for one in record["assumptions"] if one["student"] != student]
    kept = [(json.dumps(record) + "\n").encode() for record in records if record.get("student") != student]
    if kept != lines:
        write({path: b"".join(kept)}, [])
        done.changed.append(path.name)


def _without_rows(path: Path, student: str, done: Forgotten) -> None:
    """A sheet without the rows in which a cell is the student's id."""
    if not path.is_file():
        return
    text = path.read_bytes().decode("utf-8-sig", "replace")
    delimiter = delimiter_of(text)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise BadInput(f"{path} cannot be read ({error}). Correct it first.") from None
    kept = [row for row in rows if not {key_of(cell) for cell in row[:5]} & set(keys_of(student))]
    if len(kept) < len(rows):
        write({path: csv_text(kept, delimiter, quote_all=True).encode()}, [])
        done.changed.append(path.name)


def _named_in(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    with open(path, encoding="utf-8-sig", newline="") as file:
        return {row[0] for row in csv.reader(file) if row}


def _mentions(path: Path, student: str) -> bool:
    return path.is_file() and student.encode() in path.read_bytes()
