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

from autograder.errors import BadInput
from autograder.judge.results import CaseResult, Diagnosis
from autograder.judge.verdicts import Verdict

VERSION = 1
JOURNAL = "results.jsonl"


@dataclass(frozen=True)
class Outcome:
    """Everything found out about one submission."""

    student: str
    path: str
    digest: str  # of the submitted file
    suite: str  # of what it was graded with
    seed: int
    status: str  # "graded", "unreadable" or "infrastructure"
    cases: tuple[CaseResult, ...] = ()
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)  # by question
    notes: tuple[str, ...] = ()
    printed: str = ""
    box: str = ""
    seconds: float = 0.0
    texts: dict[str, str] = field(default_factory=dict)  # free-text answers, by question

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes a finished submission finished: the same student, file, suite and seed."""
        return self.student, self.digest, self.suite, self.seed


def homework_of(out: Path) -> str:
    """The homework whose journal stands in a folder of results."""
    path = out / JOURNAL
    if not path.is_file() or not path.stat().st_size:
        raise BadInput(f"There is no journal at {path}. Give the folder that `autograder grade` wrote with --out.")
    with open(path, "rb") as file:
        return str(json.loads(file.readline())["homework"])


class Journal:
    """An open journal: what it holds, and how to add to it."""

    def __init__(self, path: Path, homework: str) -> None:
        self.path = path
        self.homework = homework
        self.outcomes: dict[str, Outcome] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise BadInput(f"The journal {path} cannot be written ({error.strerror}).") from None
        try:
            _lock(self._file)
            whole = _read(path, homework, self.outcomes)
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
        text = "".join(json.dumps(record, allow_nan=False) + "\n" for record in _records(outcome, self.homework))
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
        self.outcomes[outcome.student] = outcome

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _read(path: Path, homework: str, outcomes: dict[str, Outcome]) -> int:
    """Fill `outcomes` with the closed submissions; returns how many bytes of the file they take."""
    whole = position = 0
    cases: list[CaseResult] = []
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break  # torn by a kill
            position += len(line)
            record = json.loads(line)
            if record.get("version") != VERSION or record.get("homework") != homework:
                raise BadInput(
                    f"{path} is the journal of {record.get('homework')} in version {record.get('version')}, "
                    f"not of {homework} in version {VERSION}. Choose another --out."
                )
            if record["type"] == "case":
                cases.append(_case(record))
            else:
                outcomes[record["student"]] = _outcome(record, tuple(cases))
                cases, whole = [], position
    return whole


def _case(record: dict[str, Any]) -> CaseResult:
    fields = {name: record[name] for name in CaseResult.__dataclass_fields__}
    return CaseResult(**fields | {"verdict": Verdict(record["verdict"]), "helped": tuple(record["helped"])})


def _outcome(record: dict[str, Any], cases: tuple[CaseResult, ...]) -> Outcome:
    fields = {name: record[name] for name in Outcome.__dataclass_fields__ if name in record}
    diagnoses = {question: Diagnosis(**told) for question, told in record["diagnoses"].items()}
    return Outcome(**fields | {"cases": cases, "diagnoses": diagnoses, "notes": tuple(record["notes"])})
