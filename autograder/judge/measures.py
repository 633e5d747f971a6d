"""Instruments of course_utils as the judge reads them: in the vault, where student code has nothing to say.

In a notebook `count_work(f, x)` counts beside the answer. Where the judge asks for the same, the answer gets handles in
the place of numbers, and the operations are counted by the one who holds the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograder.judge.proxies import MEASURES, Student
from autograder.judge.watch import Seen, watch
from course_utils.instruments.no_autograd import without_autograd
from course_utils.instruments.work import count_work, functions_called

# What shows that a ready-made function was called: operations that only it needs, or the name by which torch takes it
# apart in the box; its name; and functions that account for it.
READY_MADE = (
    (
        ("_safe_softmax", "_fused_sdp_choice", "scaled_dot_product_attention", "_scaled_dot_product_attention"),
        "torch.nn.functional.scaled_dot_product_attention",
        ("scaled_dot_product_attention", "multi_head_attention_forward", "multi_head_attention", "_layer_fwd"),
    ),
    (("cross_entropy_loss",), "torch.nn.functional.cross_entropy", ("cross_entropy",)),
)


def instead_of(instrument: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What the judge does where a suite runs this instrument beside student code."""

    def register(measure: Callable[..., Any]) -> Callable[..., Any]:
        MEASURES[f"{instrument.__module__}:{instrument.__name__}"] = measure
        return measure

    return register


@instead_of(count_work)
def counted(student: Student, function: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What one call costs, and its result."""
    with watch(student) as session:
        return work_of(session.call(function, *args, **kwargs))


@instead_of(functions_called)
def called(student: Student, function: Any, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """A watched call's result, and the functions of torch that it uses.

    They are known by the operations that were asked for, and besides by the call's own word, with gradients and
    without: where operations cannot tell a function from what it is made of, only an honest answer can.
    """
    with watch(student) as session:  # first: whoever has met the numbers can know the result without any work
        seen = session.call(function, *args, **kwargs)
    names: set[str] = set()
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            names.update(map(str, student.beside(functions_called, function, *args, **kwargs)[1]))
    for shown, ready_made, accounted in READY_MADE:
        if {*seen.names, *seen.wholes} & {*shown} and not any(name.endswith(accounted) for name in names):
            names.add(ready_made)
    return seen.value, sorted(names)


@instead_of(without_autograd)
def by_hand(student: Student, function: Any, *args: Any, **kwargs: Any) -> Any:
    """A call where autograd is switched off: in a box that has none there is nothing to switch."""
    if student.autograd:
        return student.beside(without_autograd, function, *args, **kwargs)
    with torch.no_grad():
        return function(*args, **kwargs)


def work_of(seen: Seen) -> dict[str, Any]:
    """As `count_work` tells it."""
    return {"result": seen.value, "flops": seen.flops, "largest": seen.largest, "made": seen.made}
