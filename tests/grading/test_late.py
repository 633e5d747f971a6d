"""Who is late and what that costs: one policy, times that only platforms tell, dates that are said once."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import BadInput
from autograder.grading.collect import collect
from autograder.grading.late import Deadline, Extension, LatePolicy, lasting, read_time
from autograder.grading.rules import EXTENSIONS, Rules, read_rules
from autograder.grading.times import handed_in

Run = Callable[..., Any]
HOMEWORK = "hw9_tiny"
DUE = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)
NOTEBOOK = '{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'


def files(folder: Path, *paths: str, **texts: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(NOTEBOOK)
    for path, text in texts.items():
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("late, told, percent", [
    (-60, "on time", 0), (0, "on time", 0), (600, "late by 10 min, within the grace", 0),
    (3600, "late by 1 h", 10), (25 * 3600 + 1800, "late by 1 day 1 h", 20), (40 * 86400, "late by 40 days", 50),
])  # fmt: skip
def test_a_day_begun_counts_whole_after_the_grace_and_up_to_a_most(late: float, told: str, percent: float) -> None:
    found = Deadline(DUE).of("ada", (DUE + timedelta(seconds=late)).isoformat())
    assert str(found) == told and found.penalty(80) == 0.8 * percent and found.late == (late > 0)


def test_an_extension_moves_the_due_date_of_one_and_a_table_of_times_wins() -> None:
    deadline = Deadline(
        DUE, LatePolicy(), {"ben": Extension(DUE + timedelta(days=2))}, {"cy@x.org": DUE, "77": DUE + timedelta(1)}
    )
    late = (DUE + timedelta(days=1)).isoformat()
    assert str(deadline.of("ada", late)) == "late by 1 day" and str(deadline.of("ben", late)) == "on time"
    assert str(deadline.of("CY@x.org", late)) == "on time" and str(deadline.of("lovelace_77")) == "late by 1 day"
    assert deadline.last == DUE + timedelta(days=2)
    nobody = deadline.of("dan")
    assert str(nobody) == "not known" and nobody.penalty(80) == 0 and str(Deadline().of("dan")) == ""


def test_times_are_read_as_platforms_write_them() -> None:
    assert read_time("2026-11-20 23:59:00 -0800") == datetime(2026, 11, 21, 7, 59, tzinfo=UTC)
    assert read_time("2026-11-20 23:59:00.5 America/Los_Angeles").utcoffset() == timedelta(hours=-8)
    assert read_time("2026-11-20T23:59:00Z") == read_time("2026-11-20 23:59:00 UTC") == DUE
    with pytest.raises(ValueError):
        read_time("yesterday")
    assert lasting(30) == "1 min" and lasting(90060) == "1 day 1 h"


def test_nbgrader_s_stamp_counts_and_a_student_s_own_does_not(tmp_path: Path) -> None:
    source = files(tmp_path / "one", *(f"submitted/{s}/{HOMEWORK}/{HOMEWORK}.ipynb" for s in ("ada", "ben")))
    (source / "submitted" / "ada" / HOMEWORK / "timestamp.txt").write_text("2026-11-20 10:00:00 UTC")
    found = handed_in(source, collect(source, HOMEWORK))
    assert found["ada"].at == "2026-11-20T10:00:00+00:00" and not found["ben"].at and found["ben"].dated
    # the same inside a zip, with a folder around it
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for path in sorted(source.rglob("*")):
            archive.write(path, Path("course") / path.relative_to(source))
    zipped = tmp_path / "class.zip"
    assert handed_in(zipped, collect(zipped, HOMEWORK))["ada"].at == found["ada"].at
    # in a student's own folder it is only a file
    plain = files(tmp_path / "two", f"ada/submitted/ada/{HOMEWORK}/{HOMEWORK}.ipynb", f"ben/{HOMEWORK}.ipynb")
    (plain / "ada" / "submitted" / "ada" / HOMEWORK / "timestamp.txt").write_text("2020-01-01 10:00:00 UTC")
    (plain / "ben" / "timestamp.txt").write_text("2020-01-01 10:00:00 UTC")
    assert {one.at for one in handed_in(plain, collect(plain, HOMEWORK)).values()} == {""}


def test_gradescope_tells_times_and_canvas_a_mark(tmp_path: Path) -> None:
    source = files(tmp_path / "gs", *(f"submission_{n}/{HOMEWORK}.ipynb" for n in (1, 2)))
    (source / "submission_metadata.yml").write_text(
        "submission_1:\n  :created_at: 2026-11-20 10:00:00.5 -08:00\n  :submitters:\n  - :sid: a1\n"
        "submission_2:\n  :submitters:\n  - :sid: b2\n"
    )
    found = handed_in(source, collect(source, HOMEWORK))
    assert datetime.fromisoformat(found["a1"].at) == datetime(2026, 11, 20, 18, 0, 0, 500000, UTC)
    assert not found["b2"].at
    source = files(tmp_path / "canvas", f"ada_LATE_11_21_{HOMEWORK}.ipynb", f"ben_12_22_{HOMEWORK}.ipynb")
    found = handed_in(source, collect(source, HOMEWORK))
    assert found["ada_11"].late is True and found["ben_12"].late is False
    marked = Deadline(DUE).of("ada_11", "", True)
    assert str(marked) == "late" and marked.penalty(80) == 0 and str(Deadline(DUE).of("x", "", False)) == "on time"
    plain = files(tmp_path / "plain", f"ada/ada_11_21_{HOMEWORK}.ipynb", f"ben/{HOMEWORK}.ipynb")
    assert {one.late for one in handed_in(plain, collect(plain, HOMEWORK)).values()} == {None}


def test_tables_are_read_with_the_line_of_what_cannot_be(tmp_path: Path) -> None:
    (tmp_path / EXTENSIONS).write_text("Student;until;reason\nada;2026-11-25;ill, a week\nben;;\n")
    deadline = Rules(due="2026-11-20").deadline(tmp_path)
    assert deadline.extensions["ada"].reason == "ill, a week" and "ben" not in deadline.extensions
    (tmp_path / EXTENSIONS).write_text("student,until\nada,2026-11-25\nben,soon\n")
    with pytest.raises(BadInput, match="extensions.csv:3: `soon` is no date"):
        Rules(due="2026-11-20").deadline(tmp_path)
    (tmp_path / EXTENSIONS).write_text("who,until\nada,2026-11-25\n")
    with pytest.raises(BadInput, match="extensions.csv:1: these columns are needed: `student_id` and `until`"):
        Rules().deadline(tmp_path)
    with pytest.raises(BadInput, match="cannot be negative"):
        Rules(most_percent=-1).deadline(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="There is no table at"):
        Rules(times=tmp_path / "none.csv").deadline(tmp_path / "nowhere")


def test_what_was_said_is_kept_and_a_new_date_undoes_a_level() -> None:
    kept = Rules(due="2020-01-01", feedback="verdicts", percent_per_day=5)
    assert Rules().over(kept) == kept and Rules(due="2120-01-01").over(kept).feedback is None
    open_now = Rules(due="2020-01-01", closes="2120-01-01")
    assert open_now.level(open_now.deadline(Path("nowhere"))) == "teaching"  # late ones still hand in
    assert Rules(due="2020-01-01").level(Deadline(DUE - timedelta(days=3000))) == "full"


def test_a_class_is_graded_with_its_dates_and_later_commands_know_them(tiny: Path, grade: Run, commands: Run) -> None:
    (tiny / "in").mkdir()
    for student in ("ada", "ben", "cy"):
        (tiny / "in" / f"{student}.py").write_text(
            '# %% question="q9_1"\ndef twice(x):\n    return x + x\n# %% question="q9_2"\ndef half(x):\n    return 0\n'
        )
    (tiny / "times.csv").write_text("Email,Submission Time\nada,2026-11-20 10:00:00 UTC\nben,2026-11-23 11:00:00 UTC\n")
    (tiny / "more.csv").write_text("student,until,reason\nben,2026-11-22T10:00:00+00:00,ill\n")
    dates = ("--due", "2026-11-20T23:59+00:00", "--times", "times.csv", "--extensions", "more.csv")
    told = grade(tiny, *dates)
    assert told.returncode == 0, told.stderr
    assert "Late, with points taken off: ben." in told.stdout
    assert "cy: When it was handed in is not known: nothing is taken off." in told.stdout

    def rows() -> dict[str, dict[str, str]]:
        with open(tiny / "out" / "grades.csv", newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file)}

    ben = rows()["ben"]
    assert (ben["total"], ben["penalty"], ben["final"], ben["late"]) == ("60", "12", "48", "late by 1 day 1 h")
    assert rows()["ada"]["late"] == "on time" and rows()["cy"]["late"] == "not known" and rows()["cy"]["final"] == "60"
    page = (tiny / "out" / "feedback" / "ben.html").read_text()
    assert "<strong>48</strong> of 100 points" in page and "12 are taken off, since it was late by 1 day 1 h" in page
    data = json.loads((tiny / "out" / "feedback" / "ben.json").read_text())
    assert (data["total"], data["final"], data["graded"]["file"]) == (60, 48, "ben.py") and "ill" not in page

    run = commands(tiny)
    told = run("autograder", "recompute", "out", "--late", "5", "--dry-run")
    assert "ben  total: 60 -> 60, final: 48 -> 54" in told.out and rows()["ben"]["final"] == "48"
    (tiny / "out" / "extensions.csv").write_text("student,until\nben,2026-11-30\n")
    assert "ben  total: 60 -> 60, final: 48 -> 60" in run("autograder", "recompute", "out").out
    assert read_rules(tiny / "out").due == dates[1]
    assert run("autograder", "report", "out").code == 0
    assert "late" in (tiny / "out" / "report.html").read_text()
