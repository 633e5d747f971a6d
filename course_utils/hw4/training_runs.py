"""Run a student's training functions beside their code, and tell what became of the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from course_utils.hw4.translation import (
    Batch,
)

SCHEDULED = ("optimizer", "pad_id", "epochs", "rate", "warmup", "start")  # the stub's arguments of `fit`
OFFERS = {
    "pad_id": ("pad_id", "pad", "pad_idx", "padding_id"),
    "epochs": ("epochs", "n_epochs", "num_epochs"),
    "rate": ("rate", "lr", "learning_rate"),
    "optimizer": ("optimizer", "opt", "optim"),
}


def take_steps(
    train_step: Callable[..., Any],
    model: nn.Module,
    batches: Sequence[Batch],
    pad_id: int,
    rate: float = 1.0,
    adam: bool = False,
    left_over: float | None = None,
) -> tuple[list[Any], list[dict[str, Tensor]]]:
    """What each step returned, and the parameters before the first and after every step.

    With Adam those in between are left out: the parameters before the first and the last step, and at the end.

    The optimizer has its parameters in two groups. `left_over` is what stands in all gradients before the first step.
    """
    make = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = make(two_groups(model), lr=rate)
    if left_over is not None:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, left_over)
    returned, states = [], [_parameters(model)]
    for number, batch in enumerate(batches, 1):
        returned.append(_told(train_step(model, tuple(batch), optimizer, pad_id)))
        if not adam or number >= len(batches) - 1:
            states.append(_parameters(model))
    return returned, states


def call_fit(
    fit: Callable[..., Any], model: nn.Module, batches: Sequence[Batch], pad_id: int, rate: float, epochs: int = 1
) -> Any:
    """fit(model, batches), with more arguments by name where the student's function has them.

    Returns its list of losses; of another result, the name of its type.
    """
    names = list(inspect.signature(fit).parameters)[2:]
    values = {"pad_id": pad_id, "epochs": epochs, "rate": rate}
    given: dict[str, Any] = {}
    for kind, value in values.items():
        given |= {name: value for name in OFFERS[kind] if name in names}
    for name in OFFERS["optimizer"]:
        if name in names:
            given[name] = torch.optim.Adam(model.parameters(), lr=rate)
    return losses_told(fit(model, [tuple(batch) for batch in batches], **given))


def watch_fit(
    fit: Callable[..., Any], model: nn.Module, batches: Sequence[Batch], pad_id: int, schedule: dict[str, Any]
) -> tuple[Any, list[list[float]]] | None:
    """fit's list of losses, and the rates of both groups of its optimizer at each step; None for other arguments.

    `schedule` has epochs, rate, warmup and start.
    """
    if not set(SCHEDULED) <= set(inspect.signature(fit).parameters):
        return None
    rates: list[list[float]] = []
    optimizer = torch.optim.SGD(two_groups(model), lr=1e-3)

    def hook(*_: Any) -> None:
        rates.append([float(group["lr"]) for group in optimizer.param_groups])

    handle = optimizer.register_step_pre_hook(hook)
    try:
        result = fit(model, [tuple(batch) for batch in batches], optimizer=optimizer, pad_id=pad_id, **schedule)
    finally:
        handle.remove()
    return losses_told(result), rates


def optimizer_of_fit(
    fit: Callable[..., Any], model: nn.Module, batch: Batch, pad_id: int
) -> tuple[str, list[float]] | None:
    """The kind and the betas of the optimizer that fit makes itself; None where its arguments are not the stub's."""
    if not set(SCHEDULED) <= set(inspect.signature(fit).parameters):
        return None
    seen: list[tuple[str, list[float]]] = []

    def hook(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        seen.append((type(optimizer).__name__, [float(beta) for beta in optimizer.defaults.get("betas", ())]))

    handle = register_optimizer_step_pre_hook(hook)
    try:
        fit(model, [tuple(batch)], optimizer=None, pad_id=pad_id)
    finally:
        handle.remove()
    return seen[0] if seen else ("none", [])


def counts_epochs(fit: Callable[..., Any]) -> bool:
    """Whether the function has a parameter for the number of epochs."""
    return any(name in inspect.signature(fit).parameters for name in OFFERS["epochs"])


def _parameters(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    """The model's parameters in two groups of an optimizer."""
    parameters = list(model.parameters())
    return [{"params": parameters[::2]}, {"params": parameters[1::2]}]


def losses_told(result: Any) -> Any:
    """What `fit` returned as a list of losses; of another result, the name of its type."""
    if isinstance(result, Tensor) and result.ndim == 1:
        result = result.tolist()
    return [_told(loss) for loss in result] if isinstance(result, (list, tuple)) else type(result).__name__


def _told(value: Any) -> Any:
    """A number as it is; of a tensor, whether it still hangs on its graph."""
    if isinstance(value, Tensor):
        return "a tensor with its graph" if value.requires_grad else value
    return value
