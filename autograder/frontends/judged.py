"""Judge one submission in a process of its own, and read what its feedback page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from autograder.course import VARIABLE
from autograder.errors import BadInput
from autograder.grading.levels import TEACHING
from autograder.grading.rules import EXTENSIONS, RULES, TIMES
from autograder.grading.waivers import WAIVERS, read_waivers
from autograder.judge.verdicts import Infrastructure
from autograder.places import COURSE


def judge_environment(course: str | None = None) -> dict[str, str]:
    """What a judge in a process of its own is told: this process's environment, and its course, else the one here."""
    return os.environ | {VARIABLE: os.environ.get(VARIABLE) or course or str(COURSE)}


DECISIONS = (WAIVERS, RULES, EXTENSIONS, TIMES)  # what people decided, each a file beside a journal


def decisions(results: Path | None, names: tuple[str, ...] = DECISIONS) -> dict[str, str]:
    """What was decided in a folder of results, by file, for a judge that works elsewhere; raises `BadInput`."""
    if results is None:
        return {}
    if not results.is_dir():
        raise BadInput(f"There is no folder of results at {results}.")
    read_waivers(results)  # told here, where somebody can mend it
    return {name: (results / name).read_text(encoding="utf-8") for name in names if (results / name).is_file()}


class Judging:
    """The judge at work on one file, from the moment this is made; the caller may do other things meanwhile.

    It keeps to what was `decided` elsewhere: the files that stand beside a journal, by name.
    """

    def __init__(
        self,
        homework: str,
        path: Path,
        sandbox: str = "auto",
        course: str | None = None,
        feedback: str = TEACHING,
        decided: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._out = tempfile.TemporaryDirectory()
        for name in DECISIONS:
            if name in decided:
                Path(self._out.name, name).write_text(decided[name], encoding="utf-8")
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


def judged(
    homework: str,
    path: Path,
    sandbox: str = "auto",
    feedback: str = TEACHING,
    decided: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The feedback on one file, as in feedback/<student>.json; raises `Infrastructure` where it could not be graded."""
    return Judging(homework, path, sandbox, feedback=feedback, decided=decided).feedback()
