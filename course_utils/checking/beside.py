"""Run a function where the answers are: here in a notebook, in the box where the judge holds stand-ins for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def fact(function: _F) -> _F:
    """A function that tells plain data which follow from its arguments: of one notebook the judge asks once for them.

    Several cases may then look at what one run has shown.
    """
    function.is_fact = True  # type: ignore[attr-defined]
    return function


def run_beside(function: Callable[..., Any], /, *args: Any) -> Any:
    """`function(*args)`, with the answers among `args` real: what is counted or kept does not stop at a stand-in."""
    for value in args:
        student = vars(value).get("_student") if hasattr(value, "__dict__") else None
        if student is not None and callable(getattr(student, "run", None)):
            return student.run(function, *args)
    return function(*args)


def ask_all(function: Callable[..., Any], inputs: Iterable[Sequence[Any]]) -> list[Any]:
    """What an answer gives for each of these tuples of arguments; of a box it is asked in one message, not in many."""
    return list(run_beside(each, function, [tuple(arguments) for arguments in inputs]))


def each(function: Callable[..., Any], inputs: Sequence[Sequence[Any]]) -> list[Any]:
    """`function(*arguments)` for each of the inputs."""
    return [function(*arguments) for arguments in inputs]
