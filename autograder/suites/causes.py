"""`same` with a diagnosis: a wrong value that a known misunderstanding leads to is reported together with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.compare import Wrong, same


def same_or_because(got: Any, expected: Any, what: str, causes: Mapping[str, Any], **how: Any) -> None:
    """`same(got, expected, what, **how)`; where it fails, the cause whose value was given is named too.

    `causes` maps a sentence to the value that one gets that way. It is looked at only when the answer is wrong,
    and a cause that gives the right value on this input is passed over: neither can fail a right answer. Where two
    causes lead to the value, none is named.
    """
    try:
        same(got, expected, what, **how)
    except Wrong as wrong:
        fitting = [cause for cause, value in causes.items() if _equals(got, value) and not _equals(expected, value)]
        if len(fitting) != 1:
            raise
        raise Wrong(wrong.plain, wrong.mistake, f"Likely cause: {fitting[0]}.") from None


def _equals(got: Any, value: Any) -> bool:
    """Whether the answer is that wrong value, up to rounding."""
    try:
        same(got, value, "the answer", rtol=1e-5, atol=1e-12 + 1e-8 * _size(value), dtype=False)
    except Wrong:
        return False
    return True


def _size(value: Any) -> float:
    """The largest finite number in a tensor, or of a number; 1 for anything else."""
    if not isinstance(value, (Tensor, int, float)):
        return 1.0
    numbers = torch.as_tensor(value).detach().double().abs()
    return float(numbers[numbers.isfinite()].amax()) if numbers.isfinite().any() else 0.0
