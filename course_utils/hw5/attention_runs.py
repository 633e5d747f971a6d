"""What calls of homework 5 leave behind: resized positions after a step, hooks and modes after `map_attention`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn


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
    """Call `map_attention` for a model in training mode, then in evaluation mode, and tell what it has left behind.

    `hooks`: how many hooks more there are; `modes`: parts that are no longer in training mode; `frozen`: parameters
    that no longer want a gradient; `grad`: whether gradients are still switched on. And what it has undone: `deaf`,
    parts that have lost a hook of other people; `thawed`, parameters that want a gradient and did not before; `slopes`,
    parameters whose gradient is another; `replaced`, parts that are others, or have another function inside; `woken`,
    parts that are in training mode after a call in evaluation mode.
    """
    model.train()
    parameters = dict(model.named_parameters())
    resting = next(reversed(parameters))
    parameters[resting].requires_grad_(False)
    for parameter in parameters.values():
        parameter.grad = torch.full_like(parameter, 0.5)
    parts = dict(model.named_modules())
    listeners = {name: part.register_forward_hook(_listen) for name, part in parts.items()}
    hooks, functions = _hooks(model), {name: _functions(part) for name, part in parts.items()}
    with torch.enable_grad():
        map_attention(model, images)
        grad = torch.is_grad_enabled()
    now = dict(model.named_modules())
    left = {
        "hooks": _hooks(model) - hooks,
        "modes": [_name(name) for name, part in now.items() if not part.training],
        "frozen": [name for name, p in model.named_parameters() if not p.requires_grad and name != resting],
        "grad": grad,
        "deaf": [_name(name) for name in parts if listeners[name].id not in parts[name]._forward_hooks],
        "thawed": [name for name, p in model.named_parameters() if p.requires_grad and name == resting],
        "slopes": [name for name, p in parameters.items() if p.grad is None or bool((p.grad != 0.5).any())],
        "replaced": [
            _name(name)
            for name in parts
            if now.get(name) is not parts[name] or _functions(parts[name]) != functions[name]
        ],
    }
    for listener in listeners.values():
        listener.remove()
    parameters[resting].requires_grad_(True)
    model.eval()
    with torch.enable_grad():
        map_attention(model, images)
    return left | {"woken": [_name(name) for name, part in model.named_modules() if part.training]}


def _listen(_module: nn.Module, _args: Any, _output: Any) -> None:
    """A hook that does nothing."""


def _name(name: str) -> str:
    return name or "the model"


def _functions(part: nn.Module) -> dict[str, Any]:
    """The functions that a part has of its own or by its class, `forward` among them."""
    own = {name: value for name, value in vars(part).items() if isinstance(value, FunctionType | MethodType)}
    methods = {name: getattr(type(part), name, None) for name in own}
    put_back = [name for name, value in own.items() if getattr(value, "__func__", value) is methods[name]]
    return {"class's forward": type(part).forward} | {name: own[name] for name in own if name not in put_back}


def _hooks(model: nn.Module) -> int:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(part, kind)) for part in model.modules() for kind in kinds)


def head_weights(model: Any, images: Tensor) -> Tensor:
    """The weights that a model which is `audible` uses in its MAP head: [B, H, 1, N]."""
    heard: list[Tensor] = []
    hook = model.map_head.attn.register_forward_hook(lambda _module, _args, output: heard.append(output[1]))
    try:
        with torch.no_grad():
            model(images)
    finally:
        hook.remove()
    return heard[0]


def audible(model: Any, images: Tensor) -> bool:
    """Whether a hook on `model.map_head.attn` hears the weights of all images at once, as 5.8 proposes."""
    heard: list[Any] = []
    hook = model.map_head.attn.register_forward_hook(lambda _module, _args, output: heard.append(output))
    try:
        with torch.no_grad():
            model(images)
    finally:
        hook.remove()
    pairs = [output for output in heard if isinstance(output, tuple) and len(output) == 2]
    return len(heard) == len(pairs) == 1 and isinstance(pairs[0][1], Tensor) and len(pairs[0][1]) == len(images)
