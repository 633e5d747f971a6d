"""Unusual calls that a right answer stands: one tensor twice, other strides, another default dtype, a second call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def call_with_shared(
    function: Callable[..., Any], given: Sequence[Tensor], places: Sequence[int], /, **kwargs: Any
) -> Any:
    """`function` of the given tensors in these places: (0, 0, 1) passes the first one twice, as one and the same."""
    return function(*(given[i] for i in places), **kwargs)


def call_twice(function: Callable[..., Any], first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, Any]:
    """The results of two calls, both as they are after the second."""
    kept = function(*first)
    return kept, function(*second)


def with_arguments(f: Callable[..., Any], *args: Any) -> tuple[Any, list[Any]]:
    """The result of f(*args), and the arguments as they are afterwards: lists may have changed."""
    return f(*args), list(args)


def call_with_slices(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, every tensor a slice of a wider one, as one output of a projection is."""
    return _call_with(_slice, function, args, kwargs)


def call_with_views(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, every tensor a view whose axes lie the other way round in memory.

    So lie transposed matrices, heads that were split off by `x.reshape(B, N, H, Dh).transpose(1, 2)`, and states of a
    recurrent network with time in front: no two neighbouring axes can be taken as one without a copy.
    """
    return _call_with(_view, function, args, kwargs)


def call_with_default_dtype(function: Callable[..., Any], dtype: torch.dtype, /, *args: Any) -> Any:
    """`function(*args)` while the default dtype is `dtype`."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return function(*args)
    finally:
        torch.set_default_dtype(before)


def _call_with(lay_out: Callable[[Tensor], Tensor], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    def other(x: Any) -> Any:
        return lay_out(x) if isinstance(x, Tensor) and x.ndim else x

    return function(*(other(x) for x in args), **{name: other(x) for name, x in kwargs.items()})


def _slice(x: Tensor) -> Tensor:
    beside = ~x.flip(-1) if x.dtype is torch.bool else x.flip(-1) + 1
    return torch.cat([x, beside], dim=-1)[..., : x.shape[-1]]


def _view(x: Tensor) -> Tensor:
    if x.ndim == 1:
        return torch.stack([x, x], dim=-1)[:, 0]
    axes = tuple(reversed(range(x.ndim)))
    return x.permute(axes).contiguous().permute(axes)
