"""The verdicts a test case can get, and the exceptions that carry them through a test."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What became of one test case; only `INFRASTRUCTURE` is never charged to the student."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    NOT_ANSWERED = "not answered"
    INFRASTRUCTURE = "infrastructure"


class StudentFault(Exception):
    """Something the student's code did; `verdict` says which kind."""

    verdict = Verdict.ERROR


class StudentError(StudentFault):
    """The student's code raised an exception, or gave back something that is not data."""


class StudentTimeout(StudentFault):
    """The student's code used up its time."""

    verdict = Verdict.TIMEOUT


class StudentMemory(StudentFault):
    """The student's code asked for more memory than the box has."""

    verdict = Verdict.MEMORY


class StudentCrash(StudentFault):
    """The process that ran the student's code died, or sent something that is not an answer."""

    verdict = Verdict.CRASHED


class Infrastructure(Exception):
    """Ours is broken: retried, then flagged, never scored as the student's fault."""
