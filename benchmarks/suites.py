"""A right submission of every homework, graded by this tree and by an older one, in turns: how long does each take?

    python benchmarks/suites.py [--against REVISION] [--homework hw1] [--rounds 3] [--json]

Everything runs on one core: the judge, the box and the vault. A submission is the tree's own solution notebook, graded
in a box by `autograder grade`, after one without answers, which takes the start upon itself. Seconds are the median of
what the journal tells. Processor time is that of all processes of the command, less that of a command which grades the
one without answers alone: believe it where other things run on the machine. With --json the last line is one JSON
object, with `ratio_hw1` and so on: new over old seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

TREE = Path(__file__).resolve().parents[1]
OLD = "0c449de"
LOOK = 0.1  # seconds between looks at the processor time
WRITE = """
import sys
from pathlib import Path
import nbformat
from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.homework import read_homework
homework = read_homework(sys.argv[1])
nbformat.write(student_notebook(homework), Path(sys.argv[2]) / "first.ipynb")
nbformat.write(solution_notebook(homework), Path(sys.argv[2]) / "right.ipynb")
"""


class Took(NamedTuple):
    """Seconds of one right submission, and of processor time."""

    seconds: float
    processor: float


def main() -> None:
    """Measure, print a line per homework, and with --json one object."""
    known = {path.stem.partition("_")[0]: path.stem for path in sorted((TREE / "solutions").glob("hw*.py"))}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", default=OLD, metavar="REVISION", help=f"the older tree (default: {OLD})")
    parser.add_argument("--homework", choices=known, action="append", help="this one alone; may be given again")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="on which all of it runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least one")
    if options.core not in os.sched_getaffinity(0):
        parser.error(f"--core: this process may not use core {options.core}")
    figures: dict[str, float] = {}
    with older_tree(options.against) as old:
        for short in options.homework or known:
            new_times, old_times = in_turns(known[short], (TREE, old), options.rounds, options.core)
            ratios = Took(*(new / before for new, before in zip(new_times, old_times, strict=True)))
            print(
                f"{known[short]:16} {new_times.seconds:7.2f} s now {old_times.seconds:7.2f} s then   "
                f"ratio {ratios.seconds:.2f}   (processor: {new_times.processor:.2f} s, {old_times.processor:.2f} s, "
                f"{ratios.processor:.2f})",
                flush=True,
            )
            figures |= {f"ratio_{short}": ratios.seconds, f"ratio_processor_{short}": ratios.processor}
            figures |= {f"seconds_{short}": new_times.seconds, f"seconds_then_{short}": old_times.seconds}
    if options.json:
        print(json.dumps(figures))


@contextmanager
def older_tree(revision: str) -> Iterator[Path]:
    """The files of a revision, in a worktree that goes again."""
    if _git("rev-parse", "--git-dir").returncode:
        raise SystemExit("There is no git history here to compare with: run this in a clone of the repository.")
    if _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").returncode:
        raise SystemExit(f"The history has no revision {revision}: name another with --against, or fetch it.")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        place = Path(folder) / "tree"
        made = _git("worktree", "add", "--detach", str(place), revision)
        if made.returncode:
            raise SystemExit(f"git cannot lay out {revision}: {made.stderr.strip()}")
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=TREE, capture_output=True, text=True)


def in_turns(homework: str, trees: tuple[Path, Path], rounds: int, core: int) -> list[Took]:
    """The medians of both trees."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        places = [Path(folder) / name for name in ("new", "old")]
        starts = []
        for tree, place in zip(trees, places, strict=True):
            (place / "in").mkdir(parents=True)
            _run(tree, core, "-c", WRITE, homework, str(place / "in"))
            starts.append(_grade(tree, core, homework, place / "in" / "first.ipynb", place / "start").processor)
        found: list[list[Took]] = [[], []]
        for number in range(rounds):
            for tree, place, start, took in zip(trees, places, starts, found, strict=True):
                whole = _grade(tree, core, homework, place / "in", place / str(number))
                took.append(whole._replace(processor=whole.processor - start))
    return [Took(*map(statistics.median, zip(*took, strict=True))) for took in found]


def _grade(tree: Path, core: int, homework: str, submissions: Path, out: Path) -> Took:
    """Grade with one worker; seconds of the right submission, where it is among them, and processor time of all."""
    command = ["-m", "autograder", "grade", str(submissions), "--assignment", homework, "--out", str(out)]
    processor = _run(tree, core, *command, "--jobs", "1", "--seed", "1")
    lines = map(json.loads, (out / "results.jsonl").read_text(encoding="utf-8").splitlines())
    right = [line for line in lines if line.get("type") == "submission" and line["student"] == "right"]
    if any(line["status"] != "graded" for line in right):
        raise SystemExit(f"{tree} could not grade the right submission of {homework}: {right[0].get('notes')}")
    return Took(right[0]["seconds"] if right else 0.0, processor)


def _run(tree: Path, core: int, *words: str) -> float:
    """Python in a tree, with the modules of that tree, on one core; the processor time of all its processes."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    most = 0.0
    with tempfile.TemporaryFile("w+") as said:
        running = subprocess.Popen([sys.executable, *words], cwd=tree, env=environment, stdout=said, stderr=said)
        os.sched_setaffinity(running.pid, {core})
        while running.poll() is None:
            most = max(most, _processor_time(running.pid))
            time.sleep(LOOK)
        said.seek(0)
        if running.returncode:
            raise SystemExit(f"python {' '.join(words[:4])} failed in {tree}:\n{said.read()[-4000:]}")
    return most


def _processor_time(pid: int) -> float:
    """Seconds of a process, those below it, and those that they have buried."""
    seconds = 0.0
    try:
        for process in (top := psutil.Process(pid), *top.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                seconds += sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        pass
    return seconds


if __name__ == "__main__":
    main()
