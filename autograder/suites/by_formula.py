"""Derivatives that are to be written as formulas: are they, or does something take differences?

With real numbers of 53 bits no difference, of whatever order and step, has the digits of a formula: what it gains in
one place it loses in the other. Longer numbers are out of reach in a watched call, and complex ones show in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.judge.watch import Seen
from course_utils.checking.compare import Wrong, check, same

EPSILON = torch.finfo(torch.float64).eps
DIGITS = 6  # root mean square of the errors, in units of rounding: formulas have below 1, differences 45 and more
NEARLY = 1e-3  # of its size: what differences reach, and a wrong formula does not
WORK = 200  # numbers made for each of the result: a Jacobian for each row needs 50, means of differences thousands


def watched(watch: Callable[..., Any], function: Any, *args: Any, mistake: str, **limits: Any) -> Seen:
    """A watched call without complex numbers."""
    with watch(**limits) as session:
        seen: Seen = session.call(function, *args)
    check(not seen.complexes, "your function works with complex numbers: a step along the imaginary axis is a "
          "difference too. Write the derivative as a formula", mistake)  # fmt: skip
    return seen


def exact(got: Tensor, right: Tensor, size: Tensor, seen: Seen, what: str, mistake: str) -> None:
    """`Wrong` where the errors, in units of `size`, are larger than a formula's, or the way there was long.

    Of what is not even nearly right no digit is spoken of.
    """
    same(got, right, what, rtol=NEARLY, atol=NEARLY * size.max().item())
    error = ((got - right) / size).square().mean().sqrt().item() / EPSILON
    if not error <= DIGITS:
        raise Wrong(f"{what} has lost digits: over {right.numel()} entries the errors are {error:.3g} times what "
                    "rounding does, and a formula's are less than one. Do not take differences", mistake)  # fmt: skip
    check(seen.made <= WORK * right.numel(), f"{what} takes {seen.made // right.numel()} numbers for each of its own: "
          "a formula needs a few", mistake)  # fmt: skip
