"""Use an answer as a notebook does: one tensor in several places, a set that is asked what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor


def call_with_shared(
    function: Callable[..., Any], given: Sequence[Tensor], places: Sequence[int], /, **kwargs: Any
) -> Any:
    """`function` of the given tensors in these places: (0, 0, 1) passes the first one twice, as one and the same."""
    return function(*(given[i] for i in places), **kwargs)


def positions_held(function: Callable[..., Any], argument: Any, n: int) -> list[bool]:
    """For each position from 0 to n - 1, whether `position in function(argument)`."""
    found = function(argument)
    return [position in found for position in range(n)]
