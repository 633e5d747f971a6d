"""Expect an exception of the student's code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autograder.judge.faults import StudentRaised
from course_utils.checking.compare import Wrong


@contextmanager
def raises(expected: type[Exception], what: str = "your code") -> Iterator[None]:
    """`Wrong` unless the block ends with that exception, raised by the student's code (or directly)."""
    name = expected.__name__
    try:
        yield
    except StudentRaised as error:
        if name in error.type_names:
            return
        raise Wrong(f"{what} should raise {name}, but raised {error}") from None
    except expected:
        return
    raise Wrong(f"{what} should raise {name}, but raised nothing")
