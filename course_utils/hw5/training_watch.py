"""What a training loop does with a model, step by step, seen from inside the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.hw5.vision import NAMES, call

HALF = {torch.bfloat16, torch.float16}


class WatchedModel(nn.Module):
    """A linear classifier that notes how it is called and what becomes of its gradients."""

    def __init__(self, pixels: int, n_classes: int, spread: float) -> None:
        super().__init__()
        self.fc = nn.Linear(pixels, n_classes)
        nn.init.normal_(self.fc.weight, std=spread)
        nn.init.zeros_(self.fc.bias)
        self.modes: list[bool] = []  # was it in training mode, for each call that could be learned from
        self.images = 0  # how many images these calls had
        self.keys: list[Tensor] = []  # and which ones, as `image_keys` tells them apart
        self.dtypes: set[torch.dtype] = set()  # of the logits
        self.backwards = 0  # how many gradients came back to the logits
        self.stale = 0  # how many were added to one that was computed at other weights
        self.first: dict[str, Tensor] = {}  # images, logits and the gradient at the logits of the first call
        self._new: Tensor | None = None
        self._fresh_at: Tensor | None = None  # the weights at which the last gradient came alone
        self.fc.weight.register_hook(self._arrives)
        self.fc.weight.register_post_accumulate_grad_hook(self._arrived)

    def forward(self, images: Tensor) -> Tensor:
        """images [B, C, H, W] -> [B, n_classes]."""
        if torch.is_grad_enabled():
            self.modes.append(self.training)
            self.images += len(images)
            self.keys.append(image_keys(images))
        logits: Tensor = self.fc(images.flatten(1))
        self.dtypes.add(logits.dtype)
        if logits.requires_grad:
            if not self.first:
                self.first = {"images": images.detach(), "logits": logits.detach()}
            logits.register_hook(self._slope)
        return logits

    def _slope(self, gradient: Tensor) -> None:
        self.backwards += 1
        self.first.setdefault("slope", gradient.detach())

    def _arrives(self, gradient: Tensor) -> None:
        self._new = gradient.detach().clone()

    def _arrived(self, weight: Tensor) -> None:
        if self._new is None or weight.grad is None:
            return
        if torch.allclose(weight.grad, self._new):
            self._fresh_at = weight.detach().clone()
        elif self._fresh_at is None or not torch.equal(weight, self._fresh_at):  # a batch may come in several parts
            self.stale += 1


def image_keys(images: Tensor) -> Tensor:
    """One number for each image [B, ...], by which it is known again."""
    pixels = images.detach().cpu().double().flatten(1)
    weights = torch.rand(pixels.shape[1], generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return pixels @ weights


def _times(images: Tensor, shown: list[Tensor]) -> Tensor | None:
    """How often each of the images was shown, [N]; None if some that were shown are none of them."""
    known = image_keys(images)
    times = torch.zeros(len(images), dtype=torch.long)
    for keys in shown:
        gaps = (keys[:, None] - known).abs()
        if len(keys) and gaps.min(1).values.max() > 1e-6:
            return None
        times += (gaps <= 1e-6).sum(0)
    return times


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
    noted them; `times`: how often each image was shown, None where images were changed on their way; `coarse`: whether
    logits were in half precision; and `counted`: whether the function has a parameter for the number of epochs or
    steps.
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
        "times": _times(images, model.keys),
        "coarse": bool(model.dtypes & HALF),
        "counted": any(name in parameters for name in NAMES["epochs"] + NAMES["steps"]),
    }


class DeepModel(nn.Module):
    """A classifier of several parts: convolution, places, norm, hidden layer, read-out."""

    def __init__(self, side: int, n_classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.positions = nn.Parameter(0.1 * torch.randn(1, 4, side, side))
        self.norm = nn.LayerNorm(4 * side * side)
        self.hidden = nn.Linear(4 * side * side, 16)
        self.head = nn.Linear(16, n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """images [B, 1, side, side] -> [B, n_classes]."""
        x = torch.tanh(self.conv(images) + self.positions).flatten(1)
        return self.head(torch.tanh(self.hidden(self.norm(x))))


def parameters_left_alone(
    train_classifier: Callable[..., Any], images: Tensor, labels: Tensor, batch_size: int = 32
) -> list[str]:
    """The parameters of a model of several parts that are the same after one epoch of training as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = DeepModel(images.shape[-1], int(labels.max()) + 1)
        before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        batches = [*zip(images.split(batch_size), labels.split(batch_size), strict=True)]
        call(train_classifier, model, batches, epochs=1, steps=len(batches))
    return [name for name, parameter in model.named_parameters() if torch.equal(parameter.detach(), before[name])]


class AskedModel(nn.Module):
    """A linear classifier with given weights that notes in which mode it is asked, and whether gradients are kept."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.fc = nn.Linear(weight.shape[1], weight.shape[0])
        self.fc.weight.data, self.fc.bias.data = weight.clone(), bias.clone()
        self.modes: list[bool] = []
        self.kept: list[bool] = []  # whether a gradient could be computed from the logits
        self.dtypes: set[torch.dtype] = set()  # of the logits

    def forward(self, images: Tensor) -> Tensor:
        """images [B, C, H, W] -> [B, n_classes]."""
        logits: Tensor = self.fc(images.flatten(1))
        self.modes.append(self.training)
        self.kept.append(logits.requires_grad)
        self.dtypes.add(logits.dtype)
        return logits


def watch_evaluation(
    evaluate: Callable[..., Any], weight: Tensor, bias: Tensor, images: Tensor, labels: Tensor, batch_size: int
) -> dict[str, Any]:
    """Let the function measure a linear model, handed over in training mode.

    Returns the `accuracy` that it gives, `weight` and `bias` as they are afterwards, and `modes` and `kept` as the
    model noted them; `coarse`: whether logits were in half precision; `grad`: whether gradients are still switched on
    afterwards; and `frozen`: parameters that no longer want one.
    """
    model = AskedModel(weight, bias).train()
    with torch.enable_grad():
        accuracy = evaluate(model, [*zip(images.split(batch_size), labels.split(batch_size), strict=True)])
        grad = torch.is_grad_enabled()
    return {
        "accuracy": accuracy,
        "weight": model.fc.weight.detach(),
        "bias": model.fc.bias.detach(),
        "modes": model.modes,
        "kept": model.kept,
        "coarse": bool(model.dtypes & HALF),
        "grad": grad,
        "frozen": [name for name, parameter in model.named_parameters() if not parameter.requires_grad],
    }
