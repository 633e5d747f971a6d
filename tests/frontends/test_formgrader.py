"""formgrader in a real Jupyter server: it shows the judge's scores and the free texts; what people type there stays."""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

HOMEWORK = "hw9_tiny"
TOKEN = "for-this-test"


@pytest.fixture
def course(graded, tmp_path: Path):
    """A copy of the graded course."""
    return type(graded)(shutil.copytree(graded.path, tmp_path / "course"))


class Formgrader:
    """Asks formgrader what its pages ask it."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/formgrader/"

    def page(self, path: str, told: dict[str, Any] | None = None) -> str:
        """A page; with something to tell, it is put there."""
        data = None if told is None else json.dumps(told).encode()
        headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            self._address + path, data=data, headers=headers, method="PUT" if data else "GET"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def api(self, path: str, told: dict[str, Any] | None = None) -> Any:
        """An answer of its interface."""
        return json.loads(self.page(f"api/{path}", told))


@contextmanager
def formgrader(school: Path, home: Path) -> Iterator[Formgrader]:
    """A Jupyter server with nbgrader's formgrader, in the course's folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = os.environ | places | {"AUTOGRADER_COURSE": str(school.parent), "HOME": str(home)}
    command = [sys.executable, "-P", "-c", "import autograder; from jupyter_server.serverapp import main; main()"]
    command += ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={school}"]
    command += ["--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"]
    log = home / "server.log"
    with open(log, "w") as file:
        server = subprocess.Popen(command, cwd=school, env=environment, stdout=file, stderr=subprocess.STDOUT)
    asking = Formgrader(port)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                asking.api("status")
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.2)
        yield asking
    finally:
        server.terminate()
        server.wait(30)


def test_formgrader_shows_what_the_judge_gave_and_a_person_s_score_wins_and_stays(course, ids, tmp_path: Path) -> None:
    school, ben = course.path / "school", ids["ben"]
    (tmp_path / "home").mkdir()
    with formgrader(school, tmp_path / "home") as asked:
        class_ = {row["student"]: row for row in asked.api(f"submitted_notebooks/{HOMEWORK}/{HOMEWORK}")}
        assert class_[ben]["score"] == 60 and class_[ben]["needs_manual_grade"]
        assert class_[ids["dan"]]["score"] == 97 and not class_[ids["fay"]]["needs_manual_grade"]
        submission = class_[ben]["id"]
        page = asked.page(f"submissions/{submission}/")
        assert "Two halves." in page and "<script>alert(1)" not in page  # the student's text, for a person to grade
        assert "half works for any number" in page and "Not x + 2." in page  # the judge's messages below the check
        grades = {grade["name"]: grade for grade in asked.api(f"grades?submission_id={submission}")}
        assert [grades[cell]["auto_score"] for cell in ("test_q9_1", "test_q9_2", "q9_3")] == [60, 0, None]
        assert grades["q9_3"]["needs_manual_grade"] and not grades["test_q9_1"]["needs_manual_grade"]
        for cell, score in (("q9_3", 2.5), ("test_q9_2", 20.0)):
            asked.api(f"grade/{grades[cell]['id']}", {"manual_score": score, "extra_credit": None})
        comments = {comment["name"]: comment["id"] for comment in asked.api(f"comments?submission_id={submission}")}
        asked.api(f"comment/{comments['q9_3']}", {"manual_comment": "Nearly."})
        assert asked.api(f"submission/{HOMEWORK}/{ben}")["score"] == 82.5

    out = school / "judged" / HOMEWORK
    course.autograder(f"grade school/submitted --assignment {HOMEWORK} --out {out} --gradebook school")
    with open(out / "grades.csv", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["student_id"] == ben)
    assert (row["q9_2"], row["q9_3"], row["total"]) == ("20", "2.5", "82.5")
    assert "Nearly." in (out / "feedback" / f"{ben}.html").read_text() and not (out / "by_hand.csv").exists()
    assert marks(school, ben) == {"test_q9_2": (20, 0, False), "q9_3": (2.5, None, False)}

    shutil.copy(course.path / "class" / "ada.ipynb", school / "submitted" / ben / HOMEWORK / f"{HOMEWORK}.ipynb")
    (school / "submitted" / ben / HOMEWORK / "timestamp.txt").write_text("2026-12-10 12:00:00 UTC")
    course.nbgrader(f"autograde {HOMEWORK} --force")
    assert marks(school, ben) == {"test_q9_2": (20, 37, True), "q9_3": (2.5, None, True)}  # another text: another look


def marks(school: Path, student: str) -> dict[str, tuple[float, float | None, bool]]:
    """By cell: the person's score, the judge's, and whether it is flagged."""
    with Gradebook(f"sqlite:///{school}/gradebook.db") as book:
        found = {name: book.find_grade(name, HOMEWORK, HOMEWORK, student) for name in ("test_q9_2", "q9_3")}
        return {name: (g.manual_score, g.auto_score, g.needs_manual_grade) for name, g in found.items()}
