"""`autograder grade` on the tiny course's class, as a command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def grade(commands: Run) -> Run:
    def run(course: Path, *arguments: str, out: str = "out") -> subprocess.CompletedProcess[str]:
        command = ("autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", out, "--jobs", "1", *arguments)
        done = commands(course)(*command)
        return subprocess.CompletedProcess(command, done.code, done.out, done.err)

    return run
