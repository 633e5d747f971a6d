"""One submission that breaks the process that grades it is found and flagged; everybody else is graded."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ANSWERS = """# %% question="q9_1"
def twice(x):
    return VALUE

# %% question="q9_2"
def half(x):
    return x * 0.5
"""
KILLS, GROWS = "-66", "-77"
SUITE = '''"""What a submission might make of the judge."""

import os
import signal


def test_twice_breaks_nothing(twice):
    """`twice` breaks nothing."""
    value = float(twice(1.0))
    if value == -66:
        os.kill(os.getpid(), signal.SIGKILL)
    if value == -77:
        bytearray(64 * 2**30)
'''


@pytest.fixture(scope="module")
def course(write_tiny: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of six in which one submission ends its worker and one makes it ask for 64 GB."""
    course = write_tiny(tmp_path_factory.mktemp("course"))
    (course / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_1.py").write_text(SUITE)
    (course / "in").mkdir()
    for student in ("ada", "ben", "cat", "dan", "kills", "grows"):
        value = {"kills": KILLS, "grows": GROWS}.get(student, "x + x")
        (course / "in" / f"{student}.py").write_text(ANSWERS.replace("VALUE", value))
    return course


@pytest.mark.parametrize("question", [[], ["--question", "q9_1"]], ids=["all", "question"])
def test_the_one_is_flagged_and_the_others_are_graded(course: Path, commands: Run, question: list[str]) -> None:
    out = f"out{len(question)}"
    command = ["autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", out, "--jobs", "2", *question]
    done = commands(course)(*command)
    assert done.code == 1, done.err
    with open(course / out / "grades.csv", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert {rows[student]["q9_1"] for student in ("ada", "ben", "cat", "dan")} == {"60"}
    assert {rows[student]["status"] for student in ("kills", "grows")} == {"infrastructure"}
    assert "kills: Grading this submission ended the process" in done.out
    assert "grows: q9_1/test_twice_breaks_nothing: the judge ran out of memory" in done.out
    records = [json.loads(line) for line in (course / out / "results.jsonl").read_text().splitlines()]
    told = {record["message"] for record in records if record["type"] == "case" and record["student"] == "grows"}
    assert any("out of memory" in message for message in told)
