"""A long class leaves nothing behind: the judge's memory stays flat, and no process or descriptor leaks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from autograder.box.sandbox import pick
from autograder.example_class import write_class
from autograder.grading.collect import Handin
from autograder.grading.task import factory, grade_task, task_of
from autograder.judge.tools import tools

HOMEWORK = "hw1_attention"
STUDENTS = ("all-right", "wrong-axis", "loses-rows", "untouched", "leaves-early", "truncated-file")
MB = 2**20


def test_200_submissions_leave_memory_flat_and_nothing_open(tmp_path: Path) -> None:
    homework = tools(HOMEWORK)[0]
    write_class(homework, tmp_path)
    contents = [(tmp_path / f"{student}.ipynb").read_bytes() for student in STUDENTS]
    sandbox, process = pick("auto"), psutil.Process()

    def grade(number: int) -> None:
        handin = Handin(f"s{number}", "n.ipynb", contents[number % len(contents)])
        task = task_of(handin, homework, sandbox, public_only=True)
        assert grade_task(task).status in ("graded", "unreadable")

    def state() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(process.children(recursive=True))

    for number in range(60):
        grade(number)
    time.sleep(1)
    memory, before = process.memory_info().rss, state()
    for number in range(60, 200):
        grade(number)
    end = time.monotonic() + 20  # a box is killed at once, and buried a moment later
    while any(now > then for now, then in zip(state(), before, strict=True)) and time.monotonic() < end:
        time.sleep(0.1)
    assert all(now <= then for now, then in zip(state(), before, strict=True))
    assert process.memory_info().rss - memory < 40 * MB
    factory(sandbox).close()
    factory.cache_clear()
