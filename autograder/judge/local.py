"""A student in the judge's own process, for code we trust: the reference, the stubs, the catalogue."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from autograder.box.channel import LoopbackChannel
from autograder.homework import Homework
from autograder.judge.proxies import Student
from autograder.judge.seat import Sitting
from autograder.submission import Submission, reference_submission
from course_utils.checks import GRADING

os.environ[GRADING] = "1"  # a notebook's own `grader` has nothing to do in this process


def sit_locally(submission: Submission) -> Sitting:
    """Run the submission's cells here and speak to them through the same bytes as to a box."""
    channel = LoopbackChannel()
    student = Student(channel)
    student.load([asdict(cell) for cell in submission.cells])
    return Sitting(student, channel.close)


def reference_names(homework: Homework) -> SimpleNamespace:
    """The reference's own objects, called directly: what answers are compared with."""
    namespace: dict[str, Any] = {"__name__": f"reference_{homework.name}"}
    with redirect_stdout(io.StringIO()):
        for cell in reference_submission(homework).cells:
            exec(compile(cell.source, f"<{homework.name} {cell.id}>", "exec"), namespace)
    return SimpleNamespace(**namespace)
