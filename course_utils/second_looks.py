"""Calls of homework 5 that look twice: at an earlier result, at weights that have changed, at what a call leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def call_twice(function: Callable[..., Any], first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, Any]:
    """The results of two calls, both as they are after the second."""
    kept = function(*first)
    return kept, function(*second)


def resize_after_a_step(
    resize_positions: Callable[..., Tensor], positions: Tensor, step: Tensor, old: Sequence[int], new: Sequence[int]
) -> tuple[Tensor, Tensor | None]:
    """The resized positions after an optimizer has added `step` to a table that was resized before.

    Gives them and the gradient of their sum at the table.
    """
    table = nn.Parameter(positions.clone())
    resize_positions(table, tuple(old), tuple(new)).sum().backward()
    table.grad = None
    with torch.no_grad():
        table.add_(step)
    resized = resize_positions(table, tuple(old), tuple(new))
    resized.sum().backward()
    return resized.detach(), table.grad


def look_and_leave(map_attention: Callable[..., Any], model: nn.Module, images: Tensor) -> dict[str, Any]:
    """Call `map_attention` for a model in training mode, and tell what it has left behind.

    `hooks`: how many hooks more there are; `modes`: parts that are no longer in training mode; `frozen`: parameters
    that no longer want a gradient; `grad`: whether gradients are still switched on.
    """
    model.train()
    before = _hooks(model)
    with torch.enable_grad():
        map_attention(model, images)
        grad = torch.is_grad_enabled()
    return {
        "hooks": _hooks(model) - before,
        "modes": [name or "the model" for name, part in model.named_modules() if not part.training],
        "frozen": [name for name, parameter in model.named_parameters() if not parameter.requires_grad],
        "grad": grad,
    }


def _hooks(model: nn.Module) -> int:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(part, kind)) for part in model.modules() for kind in kinds)


class PlainHead(nn.Module):
    """The MAP head of these parts, with its attention called once, for all images."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.probe, self.attn, self.norm, self.mlp = head.probe, head.attn, head.norm, head.mlp

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """x [B, N, D], key_padding_mask bool [B, N] (True = padding) -> [B, D]."""
        z: Tensor = self.attn(self.probe.expand(len(x), -1, -1), x, x, key_padding_mask)[0][:, 0]
        z = z + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm(z)), approximate="tanh"))
        return z


def made_audible(model: Any, images: Tensor) -> bool:
    """See to it that a hook on `model.map_head.attn` hears the weights of all images, as 5.8 proposes.

    A head that computes its attention in another way gets another forward pass with the same parts. Gives whether
    it was needed.
    """
    heard: list[Any] = []
    hook = model.map_head.attn.register_forward_hook(
        lambda _module, _args, output: heard.append(output)
    )
    try:
        with torch.no_grad():
            model(images)
    finally:
        hook.remove()
    pairs = [output for output in heard if isinstance(output, tuple) and len(output) == 2]
    if len(heard) == len(pairs) == 1 and isinstance(pairs[0][1], Tensor) and len(pairs[0][1]) == len(images):
        return False
    model.map_head = PlainHead(model.map_head)
    return True
