"""A judge in a process of its own: grades attacks between honest submissions and tells what became of both.

Run by test_attacks.py as `AUTOGRADER_COURSE=<copy of course/> python grader.py <work folder>`: folders of attacks come
in on standard input, one line each, and what became of them goes out as JSON.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import os
import random
import resource
import runpy
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from autograder.box.jail import USERS
from autograder.box.limits import MB, Limits
from autograder.box.sandbox import pick
from autograder.box.zygote import _family
from autograder.errors import BadInput
from autograder.grading.collect import Handin, collect
from autograder.grading.journal import Journal, Outcome
from autograder.grading.outputs import report_of, write_outputs
from autograder.grading.task import factory, grade_task, task_of
from autograder.judge.tools import tools
from autograder.judge.verdicts import Infrastructure
from autograder.places import COURSE, REPOSITORY
from kit import Kit

HOMEWORK = "hw9_target"
LIMITS = Limits(
    wall=10, wall_cell=15, wall_box=120, cpu=60, memory=512 * MB, processes=16, file_size=8 * MB, open_files=64,
    output=16 * 1024, tmpfs=16 * MB,
)  # fmt: skip
WRONG = b"""# %%
def row_weights(scores, blocked=None): return scores
class Gate(nn.Module): pass
def make_kernel(width): return abs
def describe(values): return {}
"""
SECRET = "token-of-the-judge"
SETTLE = 10.0  # seconds in which what was killed has to be gone


class Stuck(BaseException):
    """The judge itself did not come back in time."""


class Grader:
    """Grades one attack after the other, with an honest submission between any two."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.sandbox = pick("auto")
        self.homework = tools(HOMEWORK)[0]
        self.answers = {question.id: question.answer for question in self.homework.questions}
        self.canaries = _make_canaries(work)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.serial = itertools.count()
        self._grade("wrong", WRONG, ".py")  # once: what is imported and opened late is there when we look
        self.honest = self._honest()

    def attack(self, folder: Path) -> dict[str, Any]:
        """What became of an attack, of the honest submission after it, and of everything it could have touched."""
        expected = tomllib.loads((folder / "expected.toml").read_text())
        token = f"escaped-{os.getpid()}-{next(self.serial)}"
        kit = Kit(self.answers, self._places(token), self.work / "canaries")
        seconds = float(expected.get("seconds", 60))
        _settle(lambda: not _of_users(self._users()) and _at_rest())  # the last box may still be on its way out
        before = self._state()
        start = time.monotonic()
        result: dict[str, Any] = {"honest_before": self.honest}
        _reset_peak_memory()
        try:
            with _deadline(seconds), self._limits(expected.get("limits", {})):
                result |= self._way(expected)(folder, expected, kit)
        except Stuck as error:
            result["broken"] = f"the judge did not come back within {seconds:g} seconds\n{_tail(error)}"
        except Exception as error:
            result["broken"] = f"the judge raised\n{_tail(error)}"
        result["seconds"] = time.monotonic() - start
        result["peak_mb"] = _peak_memory() - before["memory_mb"]
        self.honest = result["honest_after"] = self._honest()
        result["harm"] = self._harm(before, token)
        return result

    def _way(self, expected: dict[str, Any]) -> Callable[[Path, dict[str, Any], Kit], dict[str, Any]]:
        return self._class if expected.get("class") else self._collect if expected.get("collect") else self._tasks

    def _places(self, token: str) -> dict[str, str]:
        """What an attack may know of its surroundings, so that no wall is only a matter of not knowing."""
        return {
            "@CANARIES@": "|".join(map(str, self.canaries)),
            "@COURSE@": str(COURSE),
            "@JUDGE@": str(os.getpid()),
            "@PORT@": str(self.server.getsockname()[1]),
            "@REPOSITORY@": str(REPOSITORY),
            "@TOKEN@": token,
        }

    @contextmanager
    def _limits(self, told: dict[str, Any]) -> Iterator[None]:
        boxes = factory(self.sandbox)
        boxes.limits = replace(LIMITS, **told)
        try:
            yield
        finally:
            boxes.limits = LIMITS

    # one submission or several, graded here

    def _honest(self) -> dict[str, Any]:
        factory(self.sandbox).limits = LIMITS
        text = "# %%\nprint('honest')\n"
        kit = Kit(self.answers, {}, self.work)
        outcome = self._grade("honest", kit.percent(text, list(self.answers)), ".py")
        report = report_of(self.homework, outcome)
        return {
            "status": outcome.status,
            "total": report.total,
            "verdicts": {case.case: str(case.verdict) for case in outcome.cases},
            "notes": list(outcome.told),
            "printed": outcome.printed,
        }

    def _grade(self, student: str, content: bytes, suffix: str) -> Outcome:
        path = f"{student}{suffix}"
        return grade_task(task_of(Handin(student, path, content), tools(HOMEWORK)[0], self.sandbox))

    def _tasks(self, folder: Path, expected: dict[str, Any], kit: Kit) -> dict[str, Any]:
        outcomes: dict[str, Outcome] = {}
        for name in expected.get("submissions") or [_submission(folder).name]:
            path = folder / name
            suffix = expected.get("suffix", path.suffix if path.name != "make.py" else ".ipynb")
            if path.name == "make.py":
                content = runpy.run_path(str(path))["make"](kit)
            elif suffix == ".py":
                content = kit.percent(path.read_text(), expected.get("honest", []))
            else:
                content = path.read_bytes()
            student = f"attacker_{len(outcomes)}"
            outcomes[student] = self._grade(student, content, suffix)
        return {"graded": self._told(outcomes)}

    def _told(self, outcomes: dict[str, Outcome]) -> list[dict[str, Any]]:
        """The outcomes by way of journal and pages, as a run writes them."""
        out = self.work / "results"
        with Journal(out / "results.jsonl", HOMEWORK) as journal:
            for outcome in outcomes.values():
                journal.add(outcome)
        with Journal(out / "results.jsonl", HOMEWORK) as journal:
            kept = dict(journal.outcomes)
        write_outputs(self.homework, kept, out, level="full")
        told = []
        for student, outcome in outcomes.items():
            report = report_of(self.homework, kept[student])
            told.append(
                {
                    "status": outcome.status,
                    "total": report.total,
                    "scores": {result.question: result.score for result in report.questions},
                    "cases": {case.case: [str(case.verdict), case.message] for case in outcome.cases},
                    "notes": list(outcome.told),
                    "printed": outcome.printed,
                    "page": (out / "feedback" / f"{student}.html").read_text(),
                    "same_from_journal": kept[student] == outcome,
                }
            )
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
        shutil.rmtree(out)
        return [one | {"bytes": size, "files": files} for one in told]

    # a class: what `autograder grade` finds in a source, or makes of it

    def _collect(self, folder: Path, expected: dict[str, Any], kit: Kit) -> dict[str, Any]:
        place = self.work / f"class-{next(self.serial)}"
        place.mkdir()
        try:
            entries = collect(runpy.run_path(str(folder / "make.py"))["make"](kit, place), HOMEWORK)
        except BadInput as error:
            return {"refused": str(error), "entries": {}}
        finally:
            shutil.rmtree(place)
        kinds = {None: "unreadable", kit.honest(): "honest"}
        return {"refused": "", "entries": {entry.student: kinds.get(entry.content, "other") for entry in entries}}

    def _class(self, folder: Path, expected: dict[str, Any], kit: Kit) -> dict[str, Any]:
        place = self.work / f"class-{next(self.serial)}"
        place.mkdir()
        source = runpy.run_path(str(folder / "make.py"))["make"](kit, place)
        out = place / "out"
        result: dict[str, Any] = {}
        if expected.get("kills"):
            result["kills"] = [self._killed(source, out, when) for when in expected["kills"]]
        result |= self._run(source, out)
        if expected.get("kills"):
            result["undisturbed"] = self._run(source, place / "undisturbed")
        shutil.rmtree(place)
        return result

    def _run(self, source: Path, out: Path) -> dict[str, Any]:
        done = subprocess.run(_command(source, out, jobs=1), capture_output=True, text=True, cwd=self.work)
        grades = (out / "grades.csv").read_text() if (out / "grades.csv").is_file() else ""
        pages = {page.stem: page.read_text() for page in sorted(out.glob("feedback/*.html"))}
        files = [path for path in out.rglob("*") if path.is_file()]
        return {
            "exit": done.returncode,
            "said": done.stdout + done.stderr,
            "grades": grades,
            "pages": pages,
            "bytes": sum(path.stat().st_size for path in files),
            "records": _records(out / "results.jsonl"),
        }

    def _killed(self, source: Path, out: Path, when: dict[str, Any]) -> dict[str, Any]:
        """Kill a run once its journal holds so many submissions, after a little while longer."""
        before = _family(os.getpid())
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen(_command(source, out, jobs=2), cwd=self.work, **quiet)
        while run.poll() is None and _closed(out / "results.jsonl") < when["after"]:
            time.sleep(0.02)
        time.sleep(random.Random(when["after"]).random() / 4)
        if when["who"] == "run":
            run.kill()
        else:  # a worker: the run has to cope by itself
            for worker in sorted(_family(run.pid) - {run.pid}):
                if _parent(worker) == run.pid:
                    os.kill(worker, signal.SIGKILL)
                    break
        code = run.wait()
        _settle(lambda: _family(os.getpid()) <= before)
        return {"who": when["who"], "code": code, "left": sorted(_family(os.getpid()) - before)}

    # what nobody may touch

    def _state(self) -> dict[str, Any]:
        _reap()
        family = _family(os.getpid())
        return {
            "canaries": _snapshot([self.work / "canaries", COURSE, self.work / "home"]),
            "processes": family,
            "descriptors": _descriptors(family),
            "threads": threading.active_count(),
            "settings": _settings(),
            "memory_mb": _memory(),
        }

    def _users(self) -> range:
        keeper = factory(self.sandbox)._keeper
        return range(keeper._plan.first_user, keeper._plan.first_user + USERS) if keeper else range(0)

    def _harm(self, before: dict[str, Any], token: str) -> list[str]:
        """Everything that is not as it was."""
        users = self._users()
        _settle(lambda: _family(os.getpid()) == before["processes"] and not _of_users(users))
        after = self._state()
        changed = [name for name in ("threads", "settings") if before[name] != after[name]]
        harm = [f"{name} changed: {before[name]} -> {after[name]}" for name in changed]
        harm += [f"a file changed: {path}" for path in _differences(before["canaries"], after["canaries"])]
        if after["processes"] != before["processes"]:
            harm += [f"a process is left: {_title(pid)}" for pid in sorted(after["processes"] - before["processes"])]
            harm += [f"a process is gone: {pid}" for pid in sorted(before["processes"] - after["processes"])]
        elif after["descriptors"] > before["descriptors"]:
            harm.append(f"descriptors: {before['descriptors']} -> {after['descriptors']}")
        if left := _of_users(users):
            harm.append(f"processes of a box's user are left: {left}")
        places = (
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            "/",
            ".",
            Path.home(),
            COURSE,
            self.work,
            REPOSITORY,
            REPOSITORY / "tests",
        )
        return harm + [f"a file appeared in {place}" for place in places if os.path.lexists(f"{place}/{token}")]


def _submission(folder: Path) -> Path:
    paths = (folder / name for name in ("notebook.py", "notebook.ipynb", "make.py"))
    return next(path for path in paths if path.is_file())


def _make_canaries(work: Path) -> list[Path]:
    """Files that anybody may read and write, and nobody in a box should."""
    hidden = COURSE / "autograder" / "suites" / HOMEWORK / "hidden"
    places = [work / "canaries", work / "home", COURSE / "solutions", hidden]
    files = []
    for place in places:
        place.mkdir(exist_ok=True)
        file = place / "canary.txt"
        file.write_text("MARK-OF-A-CANARY")
        files.append(file)
    for path in (work, *work.rglob("*")):
        os.chmod(path, 0o777 if path.is_dir() else 0o666)
    return files


def _snapshot(places: list[Path]) -> dict[str, Any]:
    found = {}
    for path in itertools.chain(*(place.rglob("*") for place in places)):
        if "__pycache__" in path.parts:
            continue
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
        found[str(path)] = [status.st_mode, status.st_nlink if digest else 0, status.st_uid, digest]
    return found


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _settings() -> dict[str, Any]:
    """The judge's own state, as far as other people's code could want to change it."""
    return {
        "folder": os.getcwd(),
        "environment": hashlib.sha256(repr(sorted(os.environ.items())).encode()).hexdigest(),
        "limits": [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)],
        "path": list(sys.path),
        "torch": [torch.get_num_threads(), str(torch.get_default_dtype()), torch.is_grad_enabled()],
    }


def _descriptors(processes: set[int]) -> int:
    total = 0
    for pid in processes:
        try:
            total += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return total


def _of_users(users: range) -> list[int]:
    """Processes of the boxes' users, wherever they hide."""
    found = []
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid in users:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _title(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline") as line, open(f"/proc/{pid}/stat") as status:
            return f"{pid} {status.read().rpartition(')')[2].split()[0]} {line.read()[:300]!r}"
    except OSError:
        return str(pid)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _at_rest() -> bool:
    """Whether no process of ours comes or goes for a moment."""
    family = _family(os.getpid())
    time.sleep(0.1)
    return _family(os.getpid()) == family


def _settle(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SETTLE
    while not done() and time.monotonic() < deadline:
        _reap()
        time.sleep(0.05)


def _reap() -> None:
    """Bury the dead: we are the parent of whatever is orphaned below us."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _command(source: Path, out: Path, jobs: int) -> list[str]:
    told = ["--assignment", HOMEWORK, "--out", str(out), "--jobs", str(jobs), "--seed", "0", "--feedback", "full"]
    return [sys.executable, "-m", "autograder", "grade", str(source), *told]


def _records(journal: Path) -> list[tuple[str, str]]:
    """The kind and name of every whole record."""
    if not journal.is_file():
        return []
    lines = journal.read_bytes().split(b"\n")[:-1]
    records = [json.loads(line) for line in lines]
    return [(record["type"], record.get("id") or record["student"]) for record in records]


def _closed(journal: Path) -> int:
    return sum(kind == "submission" for kind, _ in _records(journal))


def _memory() -> float:
    return _status("VmRSS:")


def _peak_memory() -> float:
    return _status("VmHWM:")


def _status(field: str) -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def _reset_peak_memory() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Stuck

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5)  # again and again: a test may catch the first one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _tail(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-12:])


def main() -> None:
    """Answer until nobody asks any more."""
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans below us stay in our sight
    os.environ["SECRET_TOKEN"] = SECRET
    torch.set_num_threads(1)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        grader = Grader(Path(sys.argv[1]))
    except Infrastructure as error:
        print(json.dumps({"infrastructure": str(error)}), file=replies, flush=True)
        return
    print(json.dumps({"sandbox": grader.sandbox}), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(grader.attack(Path(line.strip()))), file=replies, flush=True)


if __name__ == "__main__":
    main()
