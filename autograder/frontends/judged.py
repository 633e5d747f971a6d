"""Judge one submission in a process of its own, and read what its feedback page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from autograder.course import VARIABLE
from autograder.grading.levels import TEACHING
from autograder.judge.verdicts import Infrastructure
from autograder.places import COURSE


def judge_environment(course: str | None = None) -> dict[str, str]:
    """What a judge in a process of its own is told: this process's environment, and its course, else the one here."""
    return os.environ | {VARIABLE: os.environ.get(VARIABLE) or course or str(COURSE)}


class Judging:
    """The judge at work on one file, from the moment this is made; the caller may do other things meanwhile."""

    def __init__(
        self, homework: str, path: Path, sandbox: str = "auto", course: str | None = None, feedback: str = TEACHING
    ) -> None:
        self._out = tempfile.TemporaryDirectory()
        command = [sys.executable, "-P", "-m", "autograder", "grade", str(path), "--assignment", homework]
        command += ["--out", self._out.name, "--jobs", "1", "--sandbox", sandbox, "--feedback", feedback]
        self._process = subprocess.Popen(
            command,
            cwd="/",
            env=judge_environment(course),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )

    def feedback(self) -> dict[str, Any]:
        """What feedback/<student>.json says; raises `Infrastructure` where the file could not be graded."""
        with self._out as out:
            said, _ = self._process.communicate()
            pages = list(Path(out, "feedback").glob("*.json"))
            feedback = json.loads(pages[0].read_text()) if pages else {}
        if not feedback or feedback["status"] == "infrastructure":
            raise Infrastructure(f"The judge could not grade this: {said[-2000:].strip()}")
        return dict(feedback)


def judged(homework: str, path: Path, sandbox: str = "auto", feedback: str = TEACHING) -> dict[str, Any]:
    """The feedback on one file, as in feedback/<student>.json; raises `Infrastructure` where it could not be graded."""
    return Judging(homework, path, sandbox, feedback=feedback).feedback()
