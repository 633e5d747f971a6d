"""Calls that are a little unusual: under another default dtype, and with a look at what was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

FORM_ONLY = ("__len__", "__get__", "__repr__", "size", "numel", "nelement", "dim", "ndimension", "_like")


def call_with_default_dtype(function: Callable[..., Any], dtype: torch.dtype, /, *args: Any) -> Any:
    """`function(*args)` while the default dtype is `dtype`."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return function(*args)
    finally:
        torch.set_default_dtype(before)


def reads_values(function: Callable[..., Any], x: Tensor, /, *args: Any) -> bool:
    """Whether `function(x, *args)` uses the values of x, and not its length or dtype alone."""
    reading = _Reading(x)
    with reading:
        function(x, *args)
    return reading.found


class _Reading(TorchFunctionMode):
    """Notes whether any function but those that ask for a tensor's form is given a certain tensor."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.memory = x.untyped_storage()._cdata
        self.found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = resolve_name(func) or getattr(func, "__name__", "")
        if not name.endswith(FORM_ONLY) and ".new_" not in name:
            given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            self.found |= any(leaf.untyped_storage()._cdata == self.memory for leaf in given)
        return func(*args, **(kwargs or {}))
