"""What a process needs to judge one homework, made once and kept."""

from __future__ import annotations

from functools import cache

from autograder.homework import Homework, read_homework
from autograder.judge.diagnosis import Diagnostician
from autograder.judge.exam import Exam
from autograder.judge.local import reference_names
from autograder.places import ASSIGNMENTS


@cache
def tools(name: str, draft: bool = False, question: str | None = None) -> tuple[Homework, Exam, Diagnostician]:
    """The homework, its exam and its diagnostician; of a `draft`, or with the exam of one `question` alone."""
    homework = read_homework(name, draft=draft, question=question)
    exam = Exam(homework, lambda: reference_names(homework), question)
    return homework, exam, Diagnostician(homework, ASSIGNMENTS / name)
