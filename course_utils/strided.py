"""Call a function with tensors whose axes do not lie in memory in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def call_strided(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)` on the same numbers, where every tensor with two axes or more is a transposed view.

    With three axes or more, the two before the last have changed places in memory: so lie heads that were split off
    by `x.reshape(B, N, H, Dh).transpose(1, 2)`, and states of a recurrent network with time in front.
    """
    return f(*(_strided(value) for value in args), **{name: _strided(value) for name, value in kwargs.items()})


def _strided(value: Any) -> Any:
    if not isinstance(value, Tensor) or value.ndim < 2:
        return value
    axes = (-3, -2) if value.ndim > 2 else (-2, -1)
    return value.transpose(*axes).contiguous().transpose(*axes)
