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


def _slice(x: Tensor) -> Tensor:
    return torch.cat([x, x.flip(-1) + 1], dim=-1)[..., : x.shape[-1]]
