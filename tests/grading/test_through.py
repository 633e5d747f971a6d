"""One submission's trouble, whatever it is, is never the class's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autograder.grading import run as running
from autograder.grading.journal import Outcome
from autograder.grading.run import Run, blank, outcomes
from autograder.grading.task import Task

Grade = Callable[[Task], Outcome]


def task(student: str, **more: Any) -> Task:
    return Task("hw9_tiny", student, f"{student}.ipynb", b"", ".ipynb", {"q9_1": "suite"}, 0, "process", **more)


class Here(Executor):
    """Runs a task when it is submitted."""

    def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **more))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def graded_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Grade], dict[str, Outcome]]:
    """The outcomes of two students' tasks with something else in the place of the judge."""

    @contextmanager
    def executor(options: Run, tasks: int) -> Iterator[Executor]:
        yield Here()

    def graded(grade: Grade) -> dict[str, Outcome]:
        monkeypatch.setattr(running, "_executor", executor)
        monkeypatch.setattr(running, "grade_task", grade)
        found = outcomes([task("ada"), task("mallory")], Run(Path("in"), "hw9_tiny", Path("out")))
        return {outcome.student: outcome for outcome in found}

    return graded


@pytest.mark.parametrize("error", [UnicodeEncodeError("utf-8", "\udcff", 0, 1, "x"), OSError("\udcff"), KeyError(1)])
def test_an_exception_is_its_submission_s_alone(graded_by: Any, error: Exception) -> None:
    def grade(task: Task) -> Outcome:
        if task.student == "mallory":
            raise error
        return blank(task, "graded")

    found = graded_by(grade)
    assert (found["ada"].status, found["mallory"].status) == ("graded", "infrastructure")
    (note,) = found["mallory"].notes
    assert type(error).__name__ in note and note.encode()


def test_a_worker_that_is_lost_once_costs_nothing(graded_by: Any) -> None:
    lost = [BrokenProcessPool("lost"), RuntimeError("a worker of a cluster was killed")]

    def grade(task: Task) -> Outcome:
        if lost and task.student == "mallory":
            raise lost.pop()
        return blank(task, "graded")

    assert {outcome.status for outcome in graded_by(grade).values()} == {"graded"} and not lost


def test_names_that_are_no_text_have_a_digest() -> None:
    names = ["a", "\udcff.safetensors", "\udcfe.safetensors", "\ud800"]
    assert len({task("ada", checkpoints=((name, b"x"),)).digest for name in names}) == 4
