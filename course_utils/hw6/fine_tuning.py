"""What a call of `fine_tune` does to the model that it is given, and to its copy; run beside the answer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook


def around(
    fine_tune: Callable[..., nn.Module],
    bert: nn.Module,
    examples: Sequence[Tensor | None],
    labels: Tensor,
    n_classes: int,
    steps: int,
    frozen: bool = False,
) -> list[str]:
    """What a call changed about bert: of "weights", "gradients", "mode" and "requires_grad"; in both modes."""
    changed = set()
    for training in (True, False):
        ready(bert, training, frozen)
        weights = copy.deepcopy(bert.state_dict())
        grads = [None if parameter.grad is None else parameter.grad.clone() for parameter in bert.parameters()]
        fine_tune(bert, tuple(examples), labels, n_classes, steps=steps)
        for parameter, grad in zip(bert.parameters(), grads, strict=True):
            kept = (
                parameter.grad is None
                if grad is None
                else parameter.grad is not None and torch.equal(parameter.grad, grad)
            )
            changed |= set() if kept else {"gradients"}
        changed |= (
            {"weights"} if any(not torch.equal(x, weights[name]) for name, x in bert.state_dict().items()) else set()
        )
        changed |= set(other_switches(bert, training, frozen))
    return sorted(changed)


def ready(bert: nn.Module, training: bool, frozen: bool) -> None:
    """Give bert a mode, and every second parameter a gradient from before."""
    bert.train(training)
    for i, parameter in enumerate(bert.parameters()):
        parameter.requires_grad_(not frozen)
        parameter.grad = torch.full_like(parameter, 0.5) if i % 2 else None


def other_switches(bert: nn.Module, training: bool, frozen: bool) -> list[str]:
    """Which of "mode" and "requires_grad" are no longer as `ready` has set them."""
    changed = ["requires_grad"] if any(parameter.requires_grad is frozen for parameter in bert.parameters()) else []
    return changed + (["mode"] if any(part.training is not training for part in bert.modules()) else [])


def trained_parts(
    fine_tune: Callable[..., nn.Module],
    bert: nn.Module,
    examples: Sequence[Tensor | None],
    labels: Tensor,
    n_classes: int,
    steps: int,
    frozen: bool = False,
) -> dict[str, bool]:
    """Whether the classifier's copy of a part of bert differs from it: by the names of the encoder's parts.

    A part is found by names that end as bert's do, with the same shape; one that is not found is left out.
    """
    bert.requires_grad_(not frozen)
    model = fine_tune(bert, tuple(examples), labels, n_classes, steps=steps)
    own, found = dict(model.named_parameters()), dict[str, bool]()
    for name, value in bert.named_parameters():
        part = name.split(".")[0]
        for other, new in own.items():
            if (other == name or other.endswith(f".{name}")) and new.shape == value.shape:
                found[part] = found.get(part, False) or not torch.equal(new, value)
    return found


def seeded_alike(
    fine_tune: Callable[..., Any], bert: nn.Module, examples: Any, labels: Tensor, n_classes: int, steps: int
) -> list[Tensor]:
    """The logits of two classifiers from the same seed, with torch's own random numbers in another state each time."""
    logits = []
    for before in (1, 2):
        torch.manual_seed(before)
        logits.append(fine_tune(bert, tuple(examples), labels, n_classes, steps=steps, seed=5)(*examples).detach())
    return logits


def updates(
    fine_tune: Callable[..., Any], bert: nn.Module, examples: Any, labels: Tensor, n_classes: int, steps: int
) -> list[int]:
    """How many steps each of torch's optimisers makes in a call; an optimiser of one's own is not seen."""
    made: dict[int, int] = {}

    def count(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        made[id(optimizer)] = made.get(id(optimizer), 0) + 1

    hook = register_optimizer_step_post_hook(count)
    try:
        fine_tune(bert, tuple(examples), labels, n_classes, steps=steps)
    finally:
        hook.remove()
    return list(made.values())
