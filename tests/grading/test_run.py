"""`autograder grade` from the outside: grades, resuming, regrading, interruptions, full disks, a cluster."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

Run = Callable[..., Any]
AUTOGRADER = [sys.executable, "-m", "autograder"]
RIGHT = {"q9_1": "def twice(x):\n    return x + x", "q9_2": "def half(x):\n    return x * 0.5"}
CLASS = {
    "right": RIGHT,
    "wrong": {**RIGHT, "q9_2": "def half(x):\n    return x + 2"},
    "stub": {"q9_1": 'def twice(x):\n    raise NotImplementedError("q9_1: write your answer here")'},
    "dies": {**RIGHT, "q9_1": "import os\ndef twice(x):\n    os._exit(3)"},
    "noisy": {
        "q9_1": "import warnings\nwarnings.warn('w')\nprint('<b>hi</b>')\n" + RIGHT["q9_1"],
        "q9_2": RIGHT["q9_2"],
    },
}
GRADE = ("autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", "out", "--jobs", "1")
GRADES = {"right": "100", "wrong": "60", "stub": "0", "dies": "40", "noisy": "100"}


@pytest.fixture
def course(tiny: Path) -> Path:
    """The tiny course with a small class in `in/`."""
    return with_class(tiny)


@pytest.fixture(scope="module")
def first_run(
    write_tiny: Callable[[Path], Path], commands: Run, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """Such a course after its class was graded into `out/`, and what the command said."""
    course = with_class(write_tiny(tmp_path_factory.mktemp("graded")))
    return course, commands(course)(*GRADE)


@pytest.fixture
def graded(first_run: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of that course, to do anything with."""
    return shutil.copytree(first_run[0], tmp_path / "copy")


def with_class(course: Path) -> Path:
    (course / "in").mkdir()
    for student, answers in CLASS.items():
        put(course, student, answers)
    return course


def put(course: Path, student: str, answers: dict[str, str]) -> None:
    cells = [f'# %% question="{question}"\n{source}\n' for question, source in answers.items()]
    (course / "in" / f"{student}.py").write_text("\n".join(cells))


def totals(course: Path, out: str = "out") -> dict[str, str]:
    with open(course / out / "grades.csv", newline="") as file:
        return {row["student_id"]: row["total"] for row in csv.DictReader(file)}


def journal(course: Path, out: str = "out") -> list[dict[str, object]]:
    return [json.loads(line) for line in (course / out / "results.jsonl").read_text().splitlines()]


def test_a_class_is_graded_once_and_again_only_where_something_changed(
    first_run: tuple[Path, Any], graded: Path, grade: Run
) -> None:
    course, told = graded, first_run[1]
    assert told.code == 0, told.err
    assert totals(course) == GRADES
    assert {path.stem for path in (course / "out" / "feedback").glob("*.html")} == set(CLASS)
    summary = json.loads((course / "out" / "summary.json").read_text())
    assert summary["submissions"] == 5 and summary["questions"]["q9_2"]["mistakes"] == {"case-1": 1}
    page = (course / "out" / "feedback" / "noisy.html").read_text()
    assert "&lt;b&gt;hi" in page and "<b>hi" not in page and "default-src 'none'" in page

    before = (course / "out" / "results.jsonl").read_bytes()
    assert "5 of 5 submissions are graded already" in grade(course).stdout
    assert (course / "out" / "results.jsonl").read_bytes() == before

    put(course, "wrong", RIGHT)
    assert "1 graded now" in grade(course).stdout
    assert totals(course)["wrong"] == "100"

    suite = course / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_2.py"
    suite.write_text(suite.read_text().replace("works for any number", "works for every number"))
    assert "5 graded now" in grade(course).stdout


def test_regrade_tells_the_score_changes_before_it_applies_them(graded: Path, grade: Run) -> None:
    course = graded
    assert "No score changes." in grade(course, "--regrade").stdout
    put(course, "wrong", RIGHT)
    told = grade(course, "--regrade").stdout
    assert "wrong  q9_2: 0 -> 40" in told and totals(course)["wrong"] == "100"
    assert not (course / "out" / "regrade.jsonl").exists()


def test_one_student_and_one_question_can_be_graded_alone(graded: Path, grade: Run) -> None:
    course = graded
    assert "1 submissions, 1 graded now" in grade(course, "--only", "right", out="one").stdout
    assert grade(course, "--only", "nobody").returncode == 2
    assert grade(course, "--question", "q9_7").returncode == 2
    put(course, "wrong", RIGHT)
    assert grade(course, "--only", "wrong", "--question", "q9_2", out="part").returncode == 0
    with open(course / "part" / "grades.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["q9_1"] == "" and row["q9_2"] == "40" and row["status"] == "partial"


def test_the_api_grades_one_file_without_a_course_folder(course: Path, grade: Run) -> None:
    code = f"r = grade('hw9_tiny', '{course}/in/wrong.py'); print(r.total, r.question('q9_2').diagnosis.label)"
    command = [sys.executable, "-c", f"from autograder import grade; {code}"]
    environment = os.environ | {"AUTOGRADER_COURSE": str(course)}
    told = subprocess.run(command, env=environment, cwd=course / "in", text=True, capture_output=True)
    assert told.stdout.split() == ["60.0", "case-1"], told.stderr


def test_replay_shows_both_sides_and_the_same_verdict(graded: Path, commands: Run) -> None:
    command = ("autograder", "replay", "wrong/q9_2/test_half_of_anything", "--out", "out", "--submissions", "in")
    told = commands(graded)(*command)
    assert told.code == 0, told.err
    assert "student: half(" in told.out and "reference: half(" in told.out and "failed:" in told.out


def slow(course: Path, students: int = 12) -> None:
    """A class in which every submission takes a moment."""
    for path in (course / "in").iterdir():
        path.unlink()
    for number in range(students):
        answers = {**RIGHT, "q9_1": "import time\ndef twice(x):\n    time.sleep(0.15)\n    return x + x"}
        put(course, f"s{number:02d}", answers)


def interrupted(course: Path, stop: Callable[[subprocess.Popen[bytes]], None], after: int) -> int:
    """Start grading, wait until `after` submissions are in the journal, and stop it."""
    command = [*AUTOGRADER, "grade", "in", "--assignment", "hw9_tiny", "--out", "out"]
    environment = os.environ | {"AUTOGRADER_COURSE": str(course)}
    process = subprocess.Popen(
        command, env=environment, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    path = course / "out" / "results.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b'"type": "submission"') >= after:
            stop(process)
            break
        time.sleep(0.01)
    process.communicate(timeout=60)
    return process.returncode


@pytest.fixture
def boxes(first_run: tuple[Path, Any]) -> Iterator[Callable[[], set[int]]]:
    """The zygotes and boxes that run now below this process: it adopts those whose parents are gone.

    After a first run, so that the zygote which several commands share is among those that were there before.
    """
    adopt, this = ctypes.CDLL(None).prctl, psutil.Process()
    adopt(36, 1)  # PR_SET_CHILD_SUBREAPER

    def running() -> set[int]:
        found = set()
        for process in this.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any("autograder.box.zygote" in word for word in process.cmdline()):
                    found.add(process.pid)
        return found

    yield running
    adopt(36, 0)
    for orphan in this.children():
        if orphan.status() == psutil.STATUS_ZOMBIE:
            os.waitpid(orphan.pid, os.WNOHANG)


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(course: Path, grade: Run, boxes: Run) -> None:
    slow(course)
    before = boxes()
    code = interrupted(course, lambda process: os.killpg(process.pid, signal.SIGINT), after=2)
    assert code == 130
    done = sum(record["type"] == "submission" for record in journal(course))
    assert 2 <= done < 12 and not boxes() - before
    assert f"{done} of 12 submissions are graded already" in grade(course).stdout
    assert set(totals(course).values()) == {"100"} and len(totals(course)) == 12


def test_kill_9_at_several_moments_loses_and_doubles_nothing(course: Path, grade: Run, boxes: Run) -> None:
    slow(course)
    before = boxes()
    for after in (0, 2, 6):
        interrupted(course, lambda process: process.kill(), after)
    assert grade(course).returncode == 0
    students = [record["student"] for record in journal(course) if record["type"] == "submission"]
    assert sorted(students) == [f"s{number:02d}" for number in range(12)]
    assert set(totals(course).values()) == {"100"}
    deadline = time.monotonic() + 10
    while boxes() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not boxes() - before


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of 16 KB is mounted for this")
def test_a_full_disk_is_told_and_the_same_command_finishes_later(course: Path) -> None:
    command = f"'{sys.executable}' -m autograder grade in --assignment hw9_tiny --out disk/out"
    script = f"""
        mkdir disk kept && mount -t tmpfs -o size=16k tmpfs disk || exit 99
        {command}; echo "first: $?"
        mount -o remount,size=16m disk
        {command}; echo "second: $?"
        cp -r disk/out kept/
    """
    environment = os.environ | {"AUTOGRADER_COURSE": str(course)}
    told = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=environment, cwd=course, text=True, capture_output=True
    )
    assert "first: 2" in told.stdout and "second: 0" in told.stdout, told.stdout + told.stderr
    assert "run the same command again" in told.stderr and "Traceback" not in told.stderr
    assert totals(course, "kept/out") == GRADES


def test_a_worker_that_is_killed_costs_nobody_a_grade(course: Path) -> None:
    slow(course)

    def kill_a_worker(process: subprocess.Popen[bytes]) -> None:
        children = subprocess.run(["pgrep", "-P", str(process.pid)], text=True, capture_output=True).stdout.split()
        os.kill(int(children[0]), signal.SIGKILL)

    assert interrupted(course, kill_a_worker, after=2) == 0
    assert len(totals(course)) == 12 and set(totals(course).values()) == {"100"}


def test_a_cluster_gives_the_same_grades_and_survives_a_lost_worker(course: Path, grade: Run) -> None:
    environment = os.environ | {"AUTOGRADER_COURSE": str(course), "OMP_NUM_THREADS": "1"}
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
            env=environment,
            cwd=course,
            **quiet,
        )  # type: ignore[call-overload]
        started.append(process)
        return process

    address = course / "scheduler.json"
    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(address), "--no-dashboard")
        deadline = time.monotonic() + 60
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        for _ in range(2):
            start(
                "worker",
                "--scheduler-file",
                str(address),
                "--nthreads",
                "1",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
                "--nworkers",
                "1",
            )
        url = json.loads(address.read_text())["address"]
        slow(course)
        assert grade(course, out="here").returncode == 0
        command = [*AUTOGRADER, "grade", "in", "--assignment", "hw9_tiny", "--out", "out", "--scheduler", url]
        process = subprocess.Popen(
            command, env=environment, cwd=course, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        path = course / "out" / "results.jsonl"
        while process.poll() is None and not (path.exists() and path.read_bytes().count(b'"type": "submission"') >= 2):
            time.sleep(0.05)
        subprocess.run(["pkill", "-9", "-P", str(started[1].pid)])
        started[1].kill()
        assert process.wait(timeout=180) == 0, process.stderr.read().decode()[-2000:] if process.stderr else ""
        assert (course / "out" / "grades.csv").read_text() == (course / "here" / "grades.csv").read_text()
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_no_scheduler_at_the_address_is_told(course: Path, grade: Run) -> None:
    told = grade(course, "--scheduler", "tcp://127.0.0.1:9")
    assert told.returncode == 2 and "No Dask scheduler answers" in told.stderr
