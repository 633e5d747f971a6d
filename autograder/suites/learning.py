"""Does it learn? A model is trained in one box and asked in another, about a task that was drawn for this case.

What is learned passes between the boxes as weights. A rule written by hand does not know the task, and what a process
has noted on the way, in a global or on the model, stays behind in the box that was trained in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from autograder.judge.proxies import ModuleProxy, Student

Train = Callable[[Student, ModuleProxy], Any]


class BothModels(NamedTuple):
    """The student in a box that saw no training, and two models there, in evaluation mode."""

    student: Student
    untrained: ModuleProxy
    trained: ModuleProxy


def in_another_box(
    student: Student,
    anew: Callable[[], Student],
    model: ModuleProxy,
    make: Callable[[Student], ModuleProxy],
    runs: Iterable[Train],
) -> Iterator[BothModels]:
    """After each training run of `model`, its weights in another one in another box, beside one as it is made.

    A run goes on from the weights that the last one reached.
    """
    for train in runs:
        train(student, model)
        state = model.state_dict()
        student = anew()
        untrained, model = make(student).eval(), make(student).eval()
        model.load_state_dict(state)
        yield BothModels(student, untrained, model)
