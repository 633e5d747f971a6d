"""Call an answer with the same numbers laid out otherwise in memory: a tensor is its values, not its strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def call_with_slices(function: Callable[..., Any], /, *args: Any) -> Any:
    """`function(*args)` with every tensor a slice of a wider one, as one of several outputs of one projection is."""
    return function(*(_slice(x) if isinstance(x, Tensor) else x for x in args))


def call_with_transposed(function: Callable[..., Any], /, *args: Any) -> Any:
    """`function(*args)` with every tensor a view that swaps the last two axes of another one."""
    return function(*(x.mT.contiguous().mT if isinstance(x, Tensor) else x for x in args))


def call_strided(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, where every tensor with two axes or more is a transposed view.

    With three axes or more, the two before the last have changed places in memory: so lie heads that were split off
    by `x.reshape(B, N, H, Dh).transpose(1, 2)`, and states of a recurrent network with time in front.
    """
    return function(*(_strided(x) for x in args), **{name: _strided(x) for name, x in kwargs.items()})


def _strided(x: Any) -> Any:
    if not isinstance(x, Tensor) or x.ndim < 2:
        return x
    axes = (-3, -2) if x.ndim > 2 else (-2, -1)
    return x.transpose(*axes).contiguous().transpose(*axes)


def _slice(x: Tensor) -> Tensor:
    return torch.cat([x, x.flip(-1) + 1], dim=-1)[..., : x.shape[-1]]
