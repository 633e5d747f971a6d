"""Where the time of one submission goes: the example class in one process, boxes and all.

    python benchmarks/overhead.py [--rounds 3]

`cells` and `suite` are the work itself, all else is overhead. Wall time: take it on a quiet machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import torch
from grading import HOMEWORK, submissions

from autograder.box.sandbox import Box, BoxFactory, pick
from autograder.grading import task as tasks
from autograder.grading.journal import Journal
from autograder.grading.outputs import write_outputs
from autograder.grading.task import Candidate, Task, factory, grade_task
from autograder.judge.diagnosis import Diagnostician
from autograder.judge.exam import Exam
from autograder.judge.tools import tools

spent: dict[str, float] = defaultdict(float)
stack: list[float] = []  # time that the steps inside the one at hand have taken


def timed(owner: Any, name: str, label: str) -> None:
    """Let a function add its time to a label, without that of other labels inside it."""
    inner: Callable[..., Any] = getattr(owner, name)

    def outer(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        stack.append(0.0)
        try:
            return inner(*args, **kwargs)
        finally:
            seconds = time.perf_counter() - start
            spent[label] += seconds - stack.pop()
            if stack:
                stack[-1] += seconds

    setattr(owner, name, outer)


def main() -> None:
    """Grade the class a few times and print the mean of each step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    homework, exam, _ = tools(HOMEWORK)
    exam.warm_up()
    sandbox = pick("auto")
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        out = Path(folder)
        texts = [nbformat.writes(model).encode() for model in submissions(homework, out / "class")]
        todo = [
            Task(HOMEWORK, f"s{number}", "", text, ".ipynb", "", 0, sandbox, public_only=True)
            for number, text in enumerate(texts)
        ]
        for task in todo:
            grade_task(task)  # fingerprints and imports
        for owner, name, label in (
            (tasks, "parse_submission", "reading"),
            (BoxFactory, "open", "opening boxes"),
            (Candidate, "_load", "cells"),
            (Box, "close", "closing boxes"),
            (Exam, "sit", "suite"),
            (Diagnostician, "diagnose", "diagnosis"),
            (Journal, "add", "journal"),
        ):
            timed(owner, name, label)
        start = time.perf_counter()
        with Journal(out / "results.jsonl", HOMEWORK) as journal:
            for _ in range(rounds):
                for task in todo:
                    journal.add(grade_task(task))
            pages = time.perf_counter()
            write_outputs(homework, journal.outcomes, out)
        spent["pages"] = (time.perf_counter() - pages) * rounds  # a page per student, not per grading
        whole = pages - start + spent["pages"]
    spent["the rest"] = whole - sum(spent.values())
    factory(sandbox).close()
    count = rounds * len(todo)
    for label, seconds in sorted(spent.items(), key=lambda pair: -pair[1]):
        print(f"{label:15}{seconds / count * 1000:8.1f} ms")
    print(f"{'a submission':15}{whole / count * 1000:8.1f} ms")
    work = spent["cells"] + spent["suite"]
    print(f"{'overhead':15}{(whole - work) / count * 1000:8.1f} ms")


if __name__ == "__main__":
    main()
