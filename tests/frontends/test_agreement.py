"""One judge: the example class gets exactly the same score per question from four tools, each run for real.

By default a selection that covers every homework and every kind of submission: `autograder grade` takes all of it, each
other tool the first homework's and its share of the rest. `make agreement` takes the whole class through every tool
(AUTOGRADER_AGREEMENT names the page to write about it).
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.example_class import roster, write_class
from autograder.homework import homework_names, read_homework

PAGE = os.environ.get("AUTOGRADER_AGREEMENT")
TELLING = {  # of these classes the submissions that tell most; of any other the first
    "hw1_attention": ("leaves-early", "truncated-file"),  # hostile, and right where it stands on that; broken
    "hw2_multihead": ("counts-only",),  # partial, with a mistake
    "hw3_blocks": ("all-right",),
    "hw4_translation": ("no-model",),  # partial, with two mistakes
    "hw5_vision": ("first-half",),  # the same
}
SELECTED = {name: TELLING.get(name, tuple(roster(name))[:1]) for name in homework_names()}
UNREADABLE = ("hw1_attention", "truncated-file")  # otter itself refuses what is no notebook, before any plugin
Files = dict[str, dict[str, Path]]  # homework -> student -> notebook
Scores = dict[tuple[str, str], dict[str, float]]  # homework, student -> question -> score
Runs = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The notebooks of the class, or of the selection from it."""
    folder, found = tmp_path_factory.mktemp("class"), {}
    for name in homework_names():
        write_class(read_homework(name), folder / name)
        chosen = list(roster(name)) if PAGE else SELECTED[name]
        found[name] = {student: folder / name / f"{student}.ipynb" for student in chosen}
    return found


def shares(names: list[str]) -> dict[str, list[str]]:
    """Which homeworks a tool takes: all, or the first and, of the others, those that come to it in turn."""
    first, *rest = names
    everything = {tool.__name__: names for tool in TOOLS}
    if PAGE:
        return everything
    return everything | {tool.__name__: [first, *rest[i :: len(OTHERS)]] for i, tool in enumerate(OTHERS)}


def test_every_front_end_gives_the_example_class_the_same_scores(files: Files, tmp_path: Path) -> None:
    taken = {tool: {name: files[name] for name in names} for tool, names in shares(list(files)).items()}
    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(TOOLS))) as pool:  # a tool has one judge at a time
        started = {t.__name__: pool.submit(t, taken[t.__name__], tmp_path / t.__name__) for t in TOOLS}
        found = {name: future.result() for name, future in started.items()}
    graded = found["autograder_grade"]
    assert set(graded) == {(homework, student) for homework in files for student in files[homework]}
    for (homework, _), scores in graded.items():
        assert set(scores) == {question.id for question in read_homework(homework).questions}
    for tool, scores in found.items():
        asked = {who: expected for who, expected in graded.items() if who[0] in taken[tool]}
        assert scores == {who: asked[who] for who in asked if (tool, who) != ("otter_run", UNREADABLE)}, tool
    if PAGE:
        Path(PAGE).write_text(page(found), encoding="utf-8")


def test_the_selection_covers_every_homework_and_kind_of_submission() -> None:
    assert list(SELECTED) == homework_names() and all(SELECTED.values())
    told = {(hw, student): roster(hw)[student] for hw, students in SELECTED.items() for student in students}
    kinds = {"broken": 0, "perfect": 0, "partial": 0, "mistake": 0, "hostile": 0, "helped": 0}
    for (homework, _), about in told.items():
        answers = about.get("answers", {}).values()
        changed = {*about.get("answers", {}), *about.get("append", {})}
        rest = [question for question in read_homework(homework).questions if question.id not in changed]
        kinds["helped"] += about.get("start") == "solved" and any(changed & set(question.uses) for question in rest)
        kinds["broken"] += "file" in about
        kinds["perfect"] += about.get("start") == "solved" and not {"answers", "append", "setup"} & set(about)
        kinds["partial"] += about.get("start") == "stub" and "solved" in answers
        kinds["mistake"] += any(answer.startswith("mistake:") for answer in answers)
        kinds["hostile"] += "append" in about
    assert all(kinds.values()), kinds


def test_every_tool_has_the_first_homework_and_every_homework_a_second_tool() -> None:
    names = homework_names()
    taken = shares(names)
    assert taken["autograder_grade"] == names and all(names[0] in mine for mine in taken.values())
    assert all(sum(name in mine for mine in taken.values()) >= 2 for name in names)


def run(*command: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment, on the course as it stands here."""
    environment = {name: value for name, value in os.environ.items() if name != "AUTOGRADER_COURSE"} | more
    environment["AUTOGRADER_SEED"] = "1"  # the same inputs from every tool
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    cwd.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, env=environment, cwd=cwd, text=True, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def autograder_grade(files: Files, work: Path) -> Scores:
    found: Scores = {}
    for homework, notebooks in files.items():
        folder = work / homework
        folder.mkdir(parents=True)
        for student, path in notebooks.items():
            shutil.copy(path, folder / f"{student}.ipynb")
        out = work / f"{homework}-graded"
        run("autograder", "grade", str(folder), "--assignment", homework, "--out", str(out), cwd=work)
        judged = {question.id for question in read_homework(homework).questions}
        with open(out / "grades.csv", newline="") as file:
            for row in csv.DictReader(file):
                found[homework, row["student_id"]] = {q: float(value) for q, value in row.items() if q in judged}
    return found


def nbgrader_autograde(files: Files, work: Path) -> Scores:
    school, found = work / "school", {}
    run("autograder", "nbgrader", "init", str(school), *files, cwd=work)
    for homework, notebooks in files.items():
        for student, path in notebooks.items():
            (school / "submitted" / student / homework).mkdir(parents=True)
            shutil.copy(path, school / "submitted" / student / homework / f"{homework}.ipynb")
        run("nbgrader", "autograde", homework, cwd=school)
    with Gradebook(f"sqlite:///{school}/gradebook.db") as book:
        for homework in files:
            for submission in book.notebook_submissions(homework, homework):
                grades = {grade.cell.name: grade.auto_score for grade in submission.grades}
                found[homework, submission.student.id] = {
                    name.removeprefix("test_"): score for name, score in grades.items() if name.startswith("test_")
                }
    return found


# What the program `otter` calls, in a fork of one process for each submission: importing it takes four seconds.
OTTER = """
import json, os, sys, traceback
from otter.cli import cli
for arguments in json.loads(sys.argv[1]):
    if os.fork() == 0:
        try:
            cli(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.wait()
"""


def otter_run(files: Files, work: Path) -> Scores:
    run("autograder", "otter", str(work), *files, cwd=work)
    commands, found = [], {}
    for homework, notebooks in files.items():
        for student, path in notebooks.items():
            out = work / homework / student
            out.mkdir()
            archive = work / homework / "autograder.zip"
            commands.append(["run", str(path), "-a", str(archive), "-o", str(out), "--no-logo"])
    run(sys.executable, "-P", "-c", OTTER, json.dumps(commands), cwd=work)
    for path in work.glob("*/*/results.json"):
        tests = json.loads(path.read_text())["tests"]
        who = (path.parent.parent.name, path.parent.name)
        found[who] = {test["name"]: test["score"] for test in tests if "score" in test}
    return found


def run_autograder(files: Files, work: Path) -> Scores:
    for homework in files:
        run("autograder", "gradescope", homework, "--out", str(work), cwd=work)

    def container(homework: str, student: str) -> dict[str, float]:
        folder = work / homework / student
        (folder / "submission").mkdir(parents=True)
        with zipfile.ZipFile(work / f"{homework}-gradescope.zip") as bundle:
            bundle.extractall(folder / "source")
        shutil.copy(files[homework][student], folder / "submission")
        shutil.copy(folder / "source" / "run_autograder", folder)
        run("bash", str(folder / "run_autograder"), cwd=folder, AUTOGRADER_PYTHON=sys.executable)
        return json.loads((folder / "results" / "results.json").read_text())["extra_data"]["questions"]

    return {(homework, student): container(homework, student) for homework in files for student in files[homework]}


OTHERS = (nbgrader_autograde, otter_run, run_autograder)
TOOLS = (autograder_grade, *OTHERS)


def page(found: dict[str, Scores]) -> str:
    """A table of what every tool gave to everybody."""
    rows = []
    for (homework, student), scores in sorted(found["autograder_grade"].items()):
        totals = [found[tool].get((homework, student)) for tool in found]
        shown = " | ".join("refused" if each is None else f"{sum(each.values()):g}" for each in totals)
        lost = ", ".join(question for question, score in scores.items() if score < full(homework)[question])
        rows.append(f"| {homework} | {student} | {shown} | {lost or 'none'} |")
    return HEAD.format(count=len(rows)) + "\n".join(rows) + "\n"


def full(homework: str) -> dict[str, float]:
    return {question.id: question.points for question in read_homework(homework).questions}


HEAD = """\
# The example class, graded by four tools

Written by `make agreement`. It grades the {count} submissions of `examples/class/` with `autograder grade`,
`nbgrader autograde`, `otter run` and Gradescope's `run_autograder`, and fails unless every question of every submission
has the same score from each. Free-text questions, which people grade, are left out. What is no notebook at all otter
refuses by itself.

| homework | submission | autograder | nbgrader | otter | Gradescope | questions that lost points |
|---|---|---|---|---|---|---|
"""
