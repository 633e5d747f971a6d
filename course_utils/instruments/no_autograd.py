"""Run a function that is to work out its gradients by hand where nothing can do it for the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def without_autograd(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function where autograd records nothing; what needs it, torch.func included, raises RuntimeError.

    So do torch's ready-made backward functions, and complex numbers: a step along the imaginary axis is a difference.
    """
    no_reverse = torch.autograd.graph.saved_tensors_hooks(_refuse, _refuse)
    no_forward = patch.object(torch.autograd.forward_ad, "make_dual", _refuse)
    with torch.inference_mode(), no_reverse, no_forward, _NoBackward():
        return function(*args, **kwargs)


class _NoBackward(TorchDispatchMode):
    """Refuses functions such as `aten::native_layer_norm_backward`, and complex results."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "backward" in func.__name__:
            _refuse(func)
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.is_complex():
            raise RuntimeError("a formula in real numbers needs no complex ones")
        return result


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("autograd is switched off here")
