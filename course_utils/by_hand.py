"""Run a function that is to work out its gradients by hand where autograd cannot help it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def without_autograd(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function where autograd records nothing; what needs it, torch.func included, raises RuntimeError."""
    with torch.inference_mode(), torch.autograd.graph.saved_tensors_hooks(_refuse, _refuse):
        return function(*args, **kwargs)


def _refuse(_: Any) -> Any:
    raise RuntimeError("autograd is switched off here")
