"""The journal `results.jsonl`: every fact of a run, appended and synced, from which all else is computed.

A submission's records are written in one piece when it is done: its cases, then one record that closes it. After a
kill the last line may be torn; it and any unclosed submission are dropped when the journal is opened again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autograder.assumptions import Assumption
from autograder.errors import BadInput
from autograder.judge.results import CaseResult, Diagnosis
from autograder.judge.verdicts import Verdict

VERSION = 2
READ = (1, VERSION)  # version 1 knew one digest for all questions: its facts are kept, and count as outdated
JOURNAL = "results.jsonl"
VOID = (
    "unreadable",
    "too large",
    "no notebook",
    "empty",
    "other homework",
)  # nothing to grade: 0 points, a page says why
MISSING = "missing"  # on the roster, without a submission


@dataclass(frozen=True)
class Outcome:
    """Everything found out about one submission."""

    student: str
    path: str
    digest: str  # of the submitted file
    suites: dict[str, str]  # by question, what its facts were found with; none where they are not of this file
    seed: int
    status: str  # "graded", "partial", "infrastructure", MISSING, or one of VOID
    cases: tuple[CaseResult, ...] = ()
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)  # by question
    notes: tuple[str, ...] = ()
    printed: str = ""
    box: str = ""
    seconds: float = 0.0
    texts: dict[str, str] = field(default_factory=dict)  # free-text answers, by question
    source: str = ""  # where it was found, from the journal's folder; unknown in journals of old
    handed: str = ""  # when it was handed in, as its platform tells; ISO with a zone
    marked: bool | None = None  # whether that was late, where the platform tells that and no time
    dated: str = ""  # the date that the graded file itself bears
    graded: str = ""  # when it was graded, ISO
    graded_by: str = ""  # the version of the package that did
    assumptions: tuple[Assumption, ...] = ()

    @property
    def void(self) -> bool:
        """Whether there was nothing in it that could be graded."""
        return self.status in VOID

    @property
    def told(self) -> tuple[str, ...]:
        """What the student reads about the notebook: what was assumed, then the notes."""
        return (*(str(one.for_student) for one in self.assumptions), *self.notes)


@dataclass(frozen=True)
class Class:
    """What a run found out about no single submission."""

    assumptions: tuple[Assumption, ...] = ()
    missing: tuple[str, ...] = ()  # on the roster, without a submission


def homework_of(out: Path) -> str:
    """The homework whose journal stands in a folder of results."""
    path = out / JOURNAL
    if not path.is_file() or not path.stat().st_size:
        raise BadInput(f"There is no journal at {path}. Give the folder that `autograder grade` wrote with --out.")
    with open(path, "rb") as file:
        return str(json.loads(file.readline())["homework"])


def known(path: Path, homework: str) -> dict[str, Outcome]:
    """What a journal holds, read without opening it for writing; nothing where there is none."""
    outcomes: dict[str, Outcome] = {}
    if path.is_file():
        _read(path, homework, outcomes)
    return outcomes


class Journal:
    """An open journal: what it holds, and how to add to it."""

    def __init__(self, path: Path, homework: str) -> None:
        self.path = path
        self.homework = homework
        self.outcomes: dict[str, Outcome] = {}
        self.of_class = Class()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise BadInput(f"The journal {path} cannot be written ({error.strerror}).") from None
        try:
            _lock(self._file)
            whole, self.of_class = _read(path, homework, self.outcomes)
            os.ftruncate(self._file, whole)
            os.lseek(self._file, 0, os.SEEK_END)
        except BlockingIOError:
            os.close(self._file)
            raise BadInput(f"Another run is writing {path}. Wait for it, or choose another --out.") from None
        except BaseException:
            os.close(self._file)
            raise

    def add(self, outcome: Outcome) -> None:
        """Append one submission's records and wait until they are on disk; nothing is kept where that fails."""
        self._append(_records(outcome, self.homework))
        self.outcomes[outcome.student] = outcome

    def add_class(self, found: Class) -> None:
        """The same for what is known of the class, where it is news; the last such record counts."""
        if found != self.of_class:
            common = {"version": VERSION, "homework": self.homework, "type": "class"}
            self._append([common | asdict(found)])
            self.of_class = found

    @property
    def everybody(self) -> dict[str, Outcome]:
        """The outcomes, and one for each who is missing."""
        return {student: missing(student) for student in self.of_class.missing} | self.outcomes

    def _append(self, records: Iterable[dict[str, Any]]) -> None:
        text = "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
        data = memoryview(text.encode())
        start = os.lseek(self._file, 0, os.SEEK_CUR)
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, start)
            os.lseek(self._file, start, os.SEEK_SET)
            raise BadInput(
                f"The journal {self.path} cannot be written ({error.strerror}). Everything before is safe: "
                "make room and run the same command again."
            ) from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def missing(student: str) -> Outcome:
    """The outcome of one who handed in nothing."""
    told = "No submission was found. If you handed one in, tell your instructor under which name."
    assumed = Assumption("missing", told, student=student)
    return Outcome(student, "", "", {}, 0, MISSING, assumptions=(assumed,))


def _lock(file: int) -> None:
    """Be the only run on this journal; one that was just killed may take a moment to let go."""
    for _ in range(20):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.1)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _records(outcome: Outcome, homework: str) -> Iterable[dict[str, Any]]:
    common = {"version": VERSION, "homework": homework, "student": outcome.student}
    for case in outcome.cases:
        yield common | {"type": "case", "id": f"{outcome.student}/{case.case}"} | case.to_json()
    closing = asdict(outcome) | {"cases": len(outcome.cases), "notes": list(outcome.notes)}
    yield common | {"type": "submission"} | closing


def _read(path: Path, homework: str, outcomes: dict[str, Outcome]) -> tuple[int, Class]:
    """Fill `outcomes` with the closed submissions; returns how many bytes of the file they take, and the class."""
    whole = position = 0
    found = Class()
    cases: list[CaseResult] = []
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break  # torn by a kill
            position += len(line)
            record = json.loads(line)
            if record.get("homework") != homework:
                raise BadInput(
                    f"{path.parent} holds the results of {record.get('homework')}, not of {homework}. "
                    "Give each homework an --out of its own."
                )
            if record.get("version") not in READ:
                version = record.get("version")
                raise BadInput(f"{path} is a journal in version {version}, not {VERSION}. Choose another --out.")
            if record["type"] == "case":
                cases.append(_case(record))
            elif record["type"] == "class":
                found, whole = Class(_assumptions(record), tuple(record["missing"])), position
            else:
                outcomes[record["student"]] = _outcome(record, tuple(cases))
                cases, whole = [], position
    return whole, found


def _assumptions(record: dict[str, Any]) -> tuple[Assumption, ...]:
    return tuple(Assumption(**told) for told in record.get("assumptions", ()))


def _case(record: dict[str, Any]) -> CaseResult:
    fields = {name: record[name] for name in CaseResult.__dataclass_fields__ if name not in ("again", "taught")}
    told: dict[str, Any] = {"helped": tuple(record["helped"]), "again": tuple(record.get("again", ()))}
    told["taught"] = record.get("taught", "")
    return CaseResult(**fields | {"verdict": Verdict(record["verdict"]), **told})


def _diagnosis(told: dict[str, Any]) -> Diagnosis:
    """A diagnosis; journals of old know its label and hint alone."""
    second = _diagnosis(told["second"]) if told.get("second") else None
    exact, fails = told.get("exact", False), tuple(told.get("fails", ()))
    return Diagnosis(told["label"], told["hint"], exact, fails, second)


def _outcome(record: dict[str, Any], cases: tuple[CaseResult, ...]) -> Outcome:
    fields = {"suites": {}} | {name: record[name] for name in Outcome.__dataclass_fields__ if name in record}
    diagnoses = {question: _diagnosis(told) for question, told in record["diagnoses"].items()}
    told = {"notes": tuple(record["notes"]), "assumptions": _assumptions(record)}
    return Outcome(**fields | {"cases": cases, "diagnoses": diagnoses, **told})
