"""What a module is made of, and which of its parameters learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


def row_gradient(model: nn.Module, name: str, row: int, *args: Any) -> float:
    """How long the gradient of one row of a parameter is when model(*args) is pulled towards zero."""
    gradient_norms(model, *args)
    gradient = model.get_parameter(name).grad
    return 0.0 if gradient is None else float(gradient[row].norm())


def gradient_norms(model: nn.Module, *args: Any) -> dict[str, float]:
    """How long the gradient of each parameter is when model(*args) is pulled towards zero."""
    model.zero_grad()
    model(*args).square().mean().backward()
    return {name: 0.0 if p.grad is None else float(p.grad.norm()) for name, p in model.named_parameters()}


def loose_tensors(make: Callable[..., nn.Module], *sizes: int) -> int:
    """How many tensors a new module holds that are neither parameters nor buffers, and would not move with it."""
    return sum(isinstance(value, Tensor) for part in make(*sizes).modules() for value in vars(part).values())
