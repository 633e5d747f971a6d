"""The same class, with the same times and extension, gets the same final scores from all front ends that know times."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.frontends import gradescope_run
from autograder.frontends.gradescope_run import Settings

HOMEWORK = "hw9_tiny"
DUE = "2026-11-10 10:00:00"
TIMES = {
    "ada": "2026-11-10 09:59:00", "ben": "2026-11-10 10:10:00", "cat": "2026-11-11 11:00:00",
    "dan": "2026-11-12 11:00:00", "eve": "2026-12-24 00:00:00", "fay": "2026-11-11 11:00:00",
}  # fmt: skip
EXTENDED, UNTIL = "dan", "2026-11-12 10:00:00"
FINAL = {"ada": 97, "ben": 60, "cat": 37 - 7.4, "dan": 97 - 9.7, "eve": 97 - 48.5, "fay": 0}


def finals(out: Path) -> dict[str, float]:
    with open(out / "grades.csv", newline="") as file:
        return {row["student_id"]: float(row["final"]) for row in csv.DictReader(file)}


def test_every_front_end_takes_the_same_off(course, monkeypatch: pytest.MonkeyPatch) -> None:
    school, url = course.path / "school", f"sqlite:///{course.path}/school/gradebook.db"
    for student, at in TIMES.items():
        folder = school / "submitted" / student / HOMEWORK
        folder.mkdir(parents=True)
        shutil.copy(course.path / "class" / f"{student}.ipynb", folder / f"{HOMEWORK}.ipynb")
        (folder / "timestamp.txt").write_text(f"{at} UTC")
    with Gradebook(url) as book:
        book.update_or_create_assignment(HOMEWORK, duedate=f"{DUE} UTC")

    # by itself, from a folder and tables
    (course.path / "times.csv").write_text("student,handed_in\n" + "".join(f"{s},{t} UTC\n" for s, t in TIMES.items()))
    (course.path / "later.csv").write_text(f"student,until\n{EXTENDED},{UNTIL}+00:00\n")
    dates = f"--due {DUE.replace(' ', 'T')}+00:00 --times times.csv --extensions later.csv"
    judged = f"grade school/submitted --assignment {HOMEWORK} --out fast --gradebook school"
    course.autograder(f"grade class --assignment {HOMEWORK} --out plain {dates}", judged)
    assert finals(course.path / "plain") == pytest.approx(FINAL)

    # into nbgrader's gradebook, where the extension is granted
    with Gradebook(url) as book:
        book.grant_extension(HOMEWORK, EXTENDED, days=2)
    course.autograder("recompute fast --gradebook school")
    assert finals(course.path / "fast") == pytest.approx(FINAL)
    with Gradebook(url) as book:
        entered = {s.student.id: s.score - s.late_submission_penalty for s in book.assignment_submissions(HOMEWORK)}
    assert entered == pytest.approx(FINAL)

    # by otter, whose zip knows what was decided in a folder of results
    course.autograder(f"otter out {HOMEWORK} --decided plain")
    for student in ("ada", "dan"):
        file, archive = course.path / "class" / f"{student}.ipynb", course.path / "out" / HOMEWORK / "autograder.zip"
        course.run("otter", "run", str(file), "-a", str(archive), "-o", str(course.path), "--no-logo")
        tests = json.loads((course.path / "results.json").read_text())["tests"]
        assert sum(test.get("score", 0) for test in tests) == pytest.approx(FINAL[student]), student

    # in Gradescope's container, by its metadata
    monkeypatch.setattr(gradescope_run, "box", lambda: "process")
    for student, at in TIMES.items():
        page = json.loads((course.path / "plain" / "feedback" / f"{student}.json").read_text())
        monkeypatch.setattr(gradescope_run, "judged", lambda *_, page=page: page)
        own = {"assignment": {"due_date": f"{UNTIL}+00:00"}} if student == EXTENDED else {}
        told = {"created_at": f"{at}+00:00", "assignment": {"due_date": f"{DUE}+00:00"}, "users": [own]}
        results = gradescope_run.graded(Path("nowhere"), told, Settings(HOMEWORK))
        assert results["score"] == pytest.approx(FINAL[student]), student
