"""What watching costs: the cases whose calls are watched, here and in a tree from before there were watched calls.

    python benchmarks/watched.py [--before 0c449de] [--rounds 3] [--json out.json]

Every round sits the same cases of every homework with the right answers, in boxes, first in the one tree and then in
the other. Processor time of judge, box and vault together; the least of the rounds counts, case by case.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
HOMEWORKS = ("hw1_attention", "hw2_multihead", "hw3_blocks", "hw4_translation", "hw5_vision")
Times = dict[str, dict[str, float]]  # homework -> case -> seconds


def main() -> None:
    """Measure both trees and print a line per homework."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", default="0c449de", help="a revision without watched calls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cases", help=argparse.SUPPRESS)  # this process measures: which cases, as JSON
    given = parser.parse_args()
    if given.cases is not None:
        print(json.dumps(measure(json.loads(given.cases))))
        return
    with tempfile.TemporaryDirectory(prefix="before-") as folder:
        before = Path(folder) / "tree"
        subprocess.run(["git", "-C", HERE, "worktree", "add", "-q", "--detach", before, given.before], check=True)
        try:
            compare(before, given.rounds, given.json)
        finally:
            subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", before], check=True)


def compare(before: Path, rounds: int, out: Path | None) -> None:
    """Print what the cases take in this tree, in the other, and the ratio."""
    watched = {homework: sorted(cases) for homework, cases in run_in(HERE, {}).items()}
    old: list[Times] = []
    new: list[Times] = []
    for _ in range(rounds):
        old.append(run_in(before, watched))
        new.append(run_in(HERE, watched))
    print(f"{'':18}{'cases':>6}{'before':>10}{'now':>10}{'ratio':>8}")
    told: dict[str, float] = {}
    sums = [0.0, 0.0]
    for homework in HOMEWORKS:
        cases = sorted(set(old[0][homework]) & set(new[0][homework]))
        a, b = (sum(min(one[homework][case] for one in times) for case in cases) for times in (old, new))
        sums = [sums[0] + a, sums[1] + b]
        told[f"ratio_{homework.partition('_')[0]}"] = b / a
        print(f"{homework:18}{len(cases):6}{a:9.3f}s{b:9.3f}s{b / a:8.2f}")
    told["ratio"] = sums[1] / sums[0]
    print(f"{'all':18}{'':6}{sums[0]:9.3f}s{sums[1]:9.3f}s{told['ratio']:8.2f}")
    if out is not None:
        out.write_text(json.dumps(told))


def run_in(tree: Path, cases: dict[str, list[str]]) -> Times:
    """The times in a process that has this tree's package; without cases, of those that are watched."""
    command = [sys.executable, str(Path(__file__).resolve()), "--cases", json.dumps(cases)]
    done = subprocess.run(
        command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, stdout=subprocess.PIPE, check=True
    )
    found: Times = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(wanted: dict[str, list[str]]) -> Times:
    """Seconds of processor time of each case, of this process and all below it."""
    import torch

    from autograder.grading.task import Candidate, factory
    from autograder.judge.seat import Seat
    from autograder.judge.tools import tools
    from autograder.submission import reference_submission

    torch.set_num_threads(1)
    boxes = factory("auto")
    found: Times = {}
    for name in HOMEWORKS:
        homework, exam, _ = tools(name)
        instruments = set() if wanted else instruments_of_the_judge()
        candidate = Candidate(reference_submission(homework), boxes)
        times: dict[str, float] = {}
        with Seat(lambda limits, _, candidate=candidate: candidate.open(limits), boxes.limits) as seat:
            for question in homework.questions:
                seat.use(question.limits)
                for case in exam.of_question(question.id):
                    if not (case.id in wanted[name] if wanted else _is_watched(case.item.function, instruments, set())):
                        continue
                    seat.student()
                    start = processor_time()
                    result = exam.sit(case, seat, 1)
                    times[case.id] = processor_time() - start
                    if result.verdict != "passed":
                        sys.exit(f"{name} {case.id}: {result.verdict}: {result.message}")
        found[name] = times
    return found


def instruments_of_the_judge() -> set[str]:
    """The names of those that are read in watched calls."""
    from autograder.judge.proxies import MEASURES

    return {name.partition(":")[2] for name in MEASURES}


def _is_watched(function: types.FunctionType, instruments: set[str], seen: set[str]) -> bool:
    """Whether a test asks for `watch`, or it or a function of its file for an instrument that the judge reads."""
    code = function.__code__
    if "watch" in code.co_varnames[: code.co_argcount] or instruments & set(code.co_names):
        return True
    seen.add(function.__name__)
    below = [function.__globals__.get(name) for name in code.co_names if name not in seen]
    return any(isinstance(f, types.FunctionType) and _is_watched(f, instruments, seen) for f in below)


def processor_time() -> float:
    """Seconds that this process and those below it that live have run."""
    below = [os.getpid()]
    total = 0
    while below:
        process = Path("/proc", str(below.pop()))
        try:
            for task in (process / "task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
                below += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


if __name__ == "__main__":
    main()
