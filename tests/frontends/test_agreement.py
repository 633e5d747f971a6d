"""One judge: the same submissions get exactly the same score per question from every front end, by the real tools."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.example_class import roster, write_class
from autograder.homework import read_homework
from autograder.places import COURSE

WHOLE = os.environ.get("AUTOGRADER_WHOLE_CLASS")  # takes minutes; without it a handful stands for the class
HANDFUL = ("leaves-early", "wrong-axis")
Scores = dict[str, dict[str, float]]  # student -> question -> score


def test_every_front_end_gives_the_odd_class_the_same_scores(course: Path, tmp_path: Path, expected, run) -> None:
    run(sys.executable, "-m", "autograder", "build", "hw9_tiny")
    odd = {student: course / "class" / f"{student}.ipynb" for student in ("ben", "cat", "eve", "fay")}
    with ThreadPoolExecutor(2) as pool:
        found = dict(pool.map(lambda tool: (tool.__name__, tool("hw9_tiny", odd, tmp_path / "work", run)), TOOLS))
    refused = {"fay": found["otter_run"].pop("fay", None)}  # otter itself cannot read what is no notebook
    wanted = {student: expected[student] for student in odd}
    assert refused == {"fay": None} and found.pop("otter_run") == {s: wanted[s] for s in wanted if s != "fay"}
    assert found == dict.fromkeys(found, wanted) and len(found) == 3


def test_every_front_end_gives_the_example_class_the_same_scores(tmp_path: Path, run) -> None:
    homework = read_homework("hw1_attention")
    write_class(homework, tmp_path / "class")
    students = [s for s, told in roster(homework.name).items() if "file" not in told] if WHOLE else HANDFUL
    chosen = {student: tmp_path / "class" / f"{student}.ipynb" for student in students}

    def here(*command: str, **options: object):
        start = [sys.executable, "-P"] if command[0] == sys.executable else [command[0]]  # not the tiny course's
        return run(*start, *command[1:], **{"AUTOGRADER_COURSE": str(COURSE)} | options)

    with ThreadPoolExecutor(2) as pool:
        found = dict(
            pool.map(lambda tool: (tool.__name__, tool(homework.name, chosen, tmp_path / "work", here)), TOOLS)
        )
    first = found["autograder_grade"]
    assert set(first) == set(students) and all(len(scores) == len(homework.questions) for scores in first.values())
    assert found == dict.fromkeys(found, first)


def autograder_grade(homework: str, files: dict[str, Path], work: Path, run) -> Scores:
    folder = work / "grade"
    folder.mkdir(parents=True)
    for student, path in files.items():
        shutil.copy(path, folder / f"{student}.ipynb")
    out = work / "graded"
    run(sys.executable, "-m", "autograder", "grade", str(folder), "--assignment", homework, "--out", str(out))
    with open(out / "grades.csv", newline="") as file:
        rows = {row.pop("student_id"): row for row in csv.DictReader(file)}
    return {s: {q: float(v) for q, v in row.items() if q in judged(out)} for s, row in rows.items()}


def judged(out: Path) -> set[str]:
    """The questions that the judge grades."""
    page = json.loads(next((out / "feedback").glob("*.json")).read_text())
    return {question["question"] for question in page["questions"] if question["text"] is None}


def nbgrader_autograde(homework: str, files: dict[str, Path], work: Path, run) -> Scores:
    school = work / "school"
    run(sys.executable, "-m", "autograder", "nbgrader", "init", str(school), homework)
    for student, path in files.items():
        (school / "submitted" / student / homework).mkdir(parents=True)
        shutil.copy(path, school / "submitted" / student / homework / f"{homework}.ipynb")
    run("nbgrader", "autograde", homework, cwd=school)
    with Gradebook(f"sqlite:///{school}/gradebook.db") as book:
        return {
            submission.student.id: {
                grade.cell.name.removeprefix("test_"): grade.auto_score
                for grade in submission.grades
                if grade.cell.name.startswith("test_")
            }
            for submission in book.notebook_submissions(homework, homework)
        }


def otter_run(homework: str, files: dict[str, Path], work: Path, run) -> Scores:
    run(sys.executable, "-m", "autograder", "otter", str(work / "otter"), homework)
    found = {}
    for student, path in files.items():
        out = work / "otter" / student
        out.mkdir()
        archive = work / "otter" / homework / "autograder.zip"
        run("otter", "run", str(path), "-a", str(archive), "-o", str(out), "--no-logo", fails=student == "fay")
        if (out / "results.json").is_file():
            tests = json.loads((out / "results.json").read_text())["tests"]
            found[student] = {test["name"]: test["score"] for test in tests if "score" in test}
    return found


def run_autograder(homework: str, files: dict[str, Path], work: Path, run) -> Scores:
    run(sys.executable, "-m", "autograder", "gradescope", homework, "--out", str(work / "bundle"))
    found = {}
    for student, path in files.items():
        container = work / "containers" / student
        (container / "submission").mkdir(parents=True)
        with zipfile.ZipFile(work / "bundle" / f"{homework}-gradescope.zip") as bundle:
            bundle.extractall(container / "source")
        shutil.copy(path, container / "submission")
        shutil.copy(container / "source" / "run_autograder", container)
        run("bash", str(container / "run_autograder"), cwd=container, AUTOGRADER_PYTHON=sys.executable)
        found[student] = json.loads((container / "results" / "results.json").read_text())["extra_data"]["questions"]
    return found


TOOLS = (autograder_grade, nbgrader_autograde, otter_run, run_autograder)
