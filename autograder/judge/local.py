"""A student in the judge's own process, for code we trust: the reference, the stubs, the catalogue."""

from __future__ import annotations

import io
import os
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict
from types import MappingProxyType, SimpleNamespace
from typing import Any

from autograder.box.channel import LoopbackChannel
from autograder.errors import BadSource, Problem
from autograder.homework import Homework
from autograder.judge.proxies import Student
from autograder.judge.relay import Relay
from autograder.judge.seat import Sitting
from autograder.submission import RunCell, Submission, reference_submission
from course_utils.notebook.grader import GRADING

os.environ[GRADING] = "1"  # a notebook's own `grader` has nothing to do in this process


def sit_locally(submission: Submission, relay: Relay | None = None) -> Sitting:
    """Run the submission's cells here and speak to them through the same bytes as to a box."""
    channel = LoopbackChannel()
    student = Student(channel)
    if relay is not None:
        student.relay = relay
        relay.serve(channel)
    student.load([asdict(cell) for cell in submission.cells])
    return Sitting(student, channel.close)


def reference_names(homework: Homework, pastes: Mapping[str, str] = MappingProxyType({})) -> SimpleNamespace:
    """The reference's own objects, called directly: what answers are compared with.

    With pastes, as `reference_submission` takes them, they are those of another answer.
    """
    namespace: dict[str, Any] = {"__name__": f"reference_{homework.name}"}
    with redirect_stdout(io.StringIO()):
        for cell in reference_submission(homework, pastes).cells:
            file = f"<{homework.name} {cell.id}>"
            try:
                exec(compile(cell.source, file, "exec"), namespace)
            except Exception as error:
                raise BadSource([_problem(homework, cell, file, error)]) from error
    return SimpleNamespace(**namespace)


def _problem(homework: Homework, cell: RunCell, file: str, error: Exception) -> Problem:
    """What the source's own code has raised, with the line of the source."""
    inside = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    written = next((c for c in homework.cells if c.kind == "code" and cell.source.startswith(c.source)), None)
    line = written.line + (inside[0] if inside and "given" not in written.metadata else 0) if written else 1
    what = f"this code raises {type(error).__name__}: {error}."
    return Problem(homework.source, line, what, "Mend it: what is given and the reference's answers must run.")
