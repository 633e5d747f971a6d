"""Run a function where the answers are: here in a notebook, in the box where the judge holds stand-ins for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def run_beside(function: Callable[..., Any], /, *args: Any) -> Any:
    """`function(*args)`, with the answers among `args` real: what is counted or kept does not stop at a stand-in."""
    for value in args:
        student = vars(value).get("_student") if hasattr(value, "__dict__") else None
        if student is not None and callable(getattr(student, "run", None)):
            return student.run(function, *args)
    return function(*args)
