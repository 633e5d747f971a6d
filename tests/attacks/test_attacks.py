"""Every folder here is an attack: it must gain nothing, harm nothing and nobody, and end. To add one, see README.md."""

from __future__ import annotations

import csv
import io
import json
import os
import queue
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ATTACKS = sorted(path.parent for path in HERE.glob("*/expected.toml"))
EXPECTED = {folder.name: tomllib.loads((folder / "expected.toml").read_text()) for folder in ATTACKS}
POINTS = {"q9_1": 30, "q9_2": 30, "q9_3": 20, "q9_4": 20}
KEYS = {
    "rows", "about", "seconds", "judge_mb", "bytes", "limits", "submissions", "suffix", "honest", "status",
    "scores", "verdicts", "cases", "has", "lacks", "notes", "class", "kills", "exit", "grades", "said",
    "collect", "entries", "count", "refused",
}  # fmt: skip
ROWS = range(1, 46)  # of the table of attacks and faults
SECRETS = ("MARK-OF-", "token-of-the-judge", "ESCAPED")  # an attack that gets through says so
PATIENCE = 240  # seconds beyond an attack's own before its judge counts as dead
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "strong", "ul", "li", "span", "code", "pre"}
TAGS |= {"details", "summary", "a"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "id", "class", "open", "href"}
ATTRIBUTES |= {"tabindex", "role", "aria-label"}  # of the page itself, for those without a mouse


class Judge:
    """A grading process; `grade` is for one thread at a time."""

    def __init__(self) -> None:
        self.work = Path(tempfile.mkdtemp(prefix="attacks-"))
        shutil.copytree(HERE / "course", self.work / "course", ignore=shutil.ignore_patterns("__pycache__"))
        (self.work / "home").mkdir()
        self.errors = tempfile.TemporaryFile()
        environment = os.environ | {
            "AUTOGRADER_COURSE": str(self.work / "course"),
            "HOME": str(self.work / "home"),
            "PYTHONPATH": str(HERE.parents[1]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "grader.py"), str(self.work)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, env=environment, cwd=self.work,
        )  # fmt: skip
        self.hello = self._answer(PATIENCE)

    def grade(self, folder: Path) -> dict[str, Any]:
        """What the process says about an attack."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{folder}\n".encode())
        self.process.stdin.flush()
        return self._answer(EXPECTED[folder.name].get("seconds", 60) + PATIENCE)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else b""
        if line.endswith(b"\n"):
            return json.loads(line)
        self.errors.seek(0)
        words = self.errors.read()[-4000:].decode("utf-8", "replace")
        return {"broken": f"the judge {'died' if ready else 'hangs'}\n{words}"}

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        shutil.rmtree(self.work, ignore_errors=True)


class Judges:
    """Two judges side by side; attacks that a judge does not survive cost that judge, not the others."""

    def __init__(self, folders: list[Path]) -> None:
        self._idle: queue.SimpleQueue[Judge | None] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(2)
        self._stop = threading.Event()
        for _ in range(2):
            self._idle.put(None)
        longest_first = sorted(folders, key=lambda folder: -EXPECTED[folder.name].get("seconds", 60))
        self.results: dict[str, Future[dict[str, Any]]] = {
            folder.name: self._pool.submit(self._grade, folder) for folder in longest_first
        }

    def _grade(self, folder: Path) -> dict[str, Any]:
        if self._stop.is_set():
            return {"broken": "not run"}
        judge = self._idle.get() or Judge()
        result = judge.hello if "sandbox" not in judge.hello else judge.grade(folder)
        if result.get("harm", True):
            judge.close()
            self._idle.put(None)
        else:
            self._idle.put(judge)
        return result

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        while not self._idle.empty():
            if judge := self._idle.get():
                judge.close()


@pytest.fixture(scope="module")
def judges(request):
    """All the attacks that were asked for, being graded."""
    names = {item.callspec.params["folder"] for item in request.session.items if "judges" in item.fixturenames}
    made = Judges(sorted(names))
    yield made
    made.close()


@pytest.mark.parametrize("folder", ATTACKS, ids=lambda folder: folder.name)
def test_attack(folder, judges):
    expected, result = EXPECTED[folder.name], judges.results[folder.name].result()
    assert "infrastructure" not in result, result.get("infrastructure")
    assert "broken" not in result, result.get("broken")
    assert result["harm"] == []
    for honest in (result["honest_before"], result["honest_after"]):
        assert (honest["status"], honest["total"]) == ("graded", 100), f"an honest submission lost points: {honest}"
    assert result["honest_before"] == result["honest_after"]
    assert result["seconds"] < expected.get("seconds", 60)
    assert result["peak_mb"] < expected.get("judge_mb", 300), "the judge itself used that much memory"
    if expected.get("class"):
        _check_class(expected, result)
    elif expected.get("collect"):
        assert re.search(expected["refused"], result["refused"]) if "refused" in expected else result["refused"] == ""
        assert result["entries"] == expected.get("entries", result["entries"] if "count" in expected else {})
        assert len(result["entries"]) == expected.get("count", len(result["entries"]))
        assert all(len(student.encode()) <= 220 for student in result["entries"]), "too long for a file's name"
    else:
        for graded in result["graded"]:
            _check_outcome(expected, graded)


def _check_outcome(expected: dict[str, Any], graded: dict[str, Any]) -> None:
    """One submission, graded by the task."""
    told = json.dumps([graded["cases"], graded["notes"], graded["printed"]], ensure_ascii=False)
    assert graded["status"] == expected.get("status", "graded"), told
    honest = expected.get("honest", [])
    for question, points in POINTS.items():
        allowed = expected.get("scores", {}).get(question, points if question in honest else 0)
        assert graded["scores"][question] == allowed, f"{question}: {told}"
    verdicts = {case: verdict for case, (verdict, _) in graded["cases"].items()}
    assert "infrastructure" not in verdicts.values(), told
    for question, verdict in expected.get("verdicts", {}).items():
        allowed = [verdict] if isinstance(verdict, str) else verdict
        seen = {case: got for case, got in verdicts.items() if case.startswith(f"{question}/")}
        assert set(seen.values()) <= set(allowed), f"{question}: {told}"
    for case, verdict in expected.get("cases", {}).items():
        assert verdicts[case] == verdict, f"{case}: {told}"
    for words in expected.get("notes", []):
        assert any(re.search(words, note) for note in graded["notes"]), f"no note says {words}: {graded['notes']}"
    assert graded["same_from_journal"], "the journal does not give back what was put in"
    assert graded["bytes"] < expected.get("bytes", 200_000), "results as large as that fill a disk"
    assert all(re.fullmatch(r"grades\.csv|summary\.json|results\.jsonl|feedback/attacker_\d\.(html|json)", name)
               for name in graded["files"]), graded["files"]  # fmt: skip
    for secret in SECRETS:
        assert secret not in told
    _check_page(expected, graded["page"])


def _check_class(expected: dict[str, Any], result: dict[str, Any]) -> None:
    """A whole class, graded by the command."""
    assert result["exit"] == expected.get("exit", 0), result["said"]
    assert "Traceback" not in result["said"]
    for words in expected.get("said", []):
        assert words in result["said"]
    grades = {row["student_id"]: row for row in csv.DictReader(io.StringIO(result["grades"]))}
    wanted = expected.get("grades", {})
    assert grades.keys() == wanted.keys()
    for student, (total, status) in wanted.items():
        assert (float(grades[student]["total"]), grades[student]["status"]) == (total, status), student
    assert len(result["records"]) == len(set(map(tuple, result["records"]))), "a record stands twice in the journal"
    assert result["bytes"] < expected.get("bytes", 2_000_000)
    assert result["pages"].keys() == wanted.keys()
    for page in result["pages"].values():
        _check_page({"lacks": expected.get("lacks", [])}, page)
    for kill in result.get("kills", []):
        assert kill["left"] == [], "processes outlived the run that was killed"
        assert kill["code"] == (-9 if kill["who"] == "run" else 0)
    if "undisturbed" in result:
        assert result["grades"] == result["undisturbed"]["grades"]
        assert sorted(map(tuple, result["records"])) == sorted(map(tuple, result["undisturbed"]["records"]))
        assert _without_times(result["pages"]) == _without_times(result["undisturbed"]["pages"])


def _without_times(pages: dict[str, str]) -> dict[str, str]:
    """The pages without when they were graded."""
    return {student: re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "", page) for student, page in pages.items()}


def _check_page(expected: dict[str, Any], page: str) -> None:
    """Nothing on a page is the student's but text."""
    seen = _Page(page)
    assert seen.tags <= TAGS and seen.attributes <= ATTRIBUTES
    assert all(link.startswith("#q") for link in seen.links), seen.links
    assert "default-src 'none'" in page
    assert page.count("<style") == 1
    for words in expected.get("has", []):
        assert re.search(words, seen.text), f"the feedback does not say {words}: {seen.text}"
    for words in (*expected.get("lacks", []), *SECRETS):
        assert words not in seen.text, f"the feedback says {words}"


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.links += [value or "" for name, value in attrs if name == "href"]

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_row_of_the_table_is_covered():
    covered = {row for expected in EXPECTED.values() for row in expected["rows"]}
    assert covered >= set(ROWS), f"no attack for {sorted(set(ROWS) - covered)}"


def test_every_expectation_is_one():
    unknown = {name: sorted(expected.keys() - KEYS) for name, expected in EXPECTED.items() if expected.keys() - KEYS}
    assert not unknown, unknown
