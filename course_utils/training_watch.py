"""What a training loop does with a model, step by step, seen from inside the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.vision import NAMES, call


class WatchedModel(nn.Module):
    """A linear classifier that notes how it is called and what becomes of its gradients."""

    def __init__(self, pixels: int, n_classes: int, spread: float) -> None:
        super().__init__()
        self.fc = nn.Linear(pixels, n_classes)
        nn.init.normal_(self.fc.weight, std=spread)
        nn.init.zeros_(self.fc.bias)
        self.modes: list[bool] = []  # was it in training mode, for each call that could be learned from
        self.images = 0  # how many images these calls had
        self.backwards = 0  # how many gradients came back
        self.stale = 0  # how many of them were added to an older one
        self.first: dict[str, Tensor] = {}  # images, logits and the gradient at the logits of the first call
        self._new: Tensor | None = None
        self.fc.weight.register_hook(self._arrives)
        self.fc.weight.register_post_accumulate_grad_hook(self._arrived)

    def forward(self, images: Tensor) -> Tensor:
        """images [B, C, H, W] -> [B, n_classes]."""
        if torch.is_grad_enabled():
            self.modes.append(self.training)
            self.images += len(images)
        logits: Tensor = self.fc(images.flatten(1))
        if torch.is_grad_enabled() and not self.first:
            self.first = {"images": images.detach(), "logits": logits.detach()}
            logits.register_hook(self._slope)
        return logits

    def _slope(self, gradient: Tensor) -> None:
        self.first.setdefault("slope", gradient.detach())

    def _arrives(self, gradient: Tensor) -> None:
        self._new = gradient.detach().clone()

    def _arrived(self, weight: Tensor) -> None:
        self.backwards += 1
        if self._new is not None and weight.grad is not None and not torch.allclose(weight.grad, self._new):
            self.stale += 1


def watch_training(
    train_classifier: Callable[..., Any],
    images: Tensor,
    labels: Tensor,
    batch_size: int = 32,
    epochs: int = 1,
    spread: float = 0.0,
) -> dict[str, Any]:
    """Let the function train a linear model, handed over in evaluation mode, its weights random with this spread.

    Returns `weight` and `bias` as they are afterwards; `modes`, `images`, `backwards`, `stale` and `first` as the model
    noted them; and `counted`: whether the function has a parameter for the number of epochs or steps.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = WatchedModel(images[0].numel(), int(labels.max()) + 1, spread).eval()
        batches = [*zip(images.split(batch_size), labels.split(batch_size), strict=True)]
        call(train_classifier, model, batches, epochs=epochs, steps=epochs * len(batches))
    parameters = inspect.signature(train_classifier).parameters
    return {
        "weight": model.fc.weight.detach(),
        "bias": model.fc.bias.detach(),
        "modes": model.modes,
        "images": model.images,
        "backwards": model.backwards,
        "stale": model.stale,
        "first": model.first,
        "counted": any(name in parameters for name in NAMES["epochs"] + NAMES["steps"]),
    }
