"""Homework 5 in the box: what reaches the first layer, every run of `data_efficiency`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from course_utils.data import Images, mnist5k
from course_utils.data import images as image_data
from course_utils.data.images import DIGITS
from course_utils.hw5.attention_runs import audible
from course_utils.hw5.efficiency_runs import DIGIT, Notes, efficiency
from course_utils.hw5.training_watch import DeepModel
from course_utils.hw5.vision import SIZES, SMALL, SMALL_BATCH, LongEpoch, call
from course_utils.notebook.training import loader


@torch.no_grad()
def first_layer_tokens(model: nn.Module, images: Tensor) -> Tensor | None:
    """The tokens that reach the first of the model's layers; None where it is not called as a module."""
    seen: list[Tensor] = []

    def hook(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        seen.extend(value for value in (*given, *named.values()) if isinstance(value, Tensor))

    handle = model.layers[0].register_forward_pre_hook(hook, with_kwargs=True)  # type: ignore[index, union-attr]
    try:
        model(images)
    finally:
        handle.remove()
    return seen[0] if seen else None


def refusing(model: Any, patch: int) -> None:
    """Let the model's embedding raise a ValueError for images whose sides are no multiples of the patch."""

    def refuse(_module: nn.Module, args: Any) -> None:
        for images in args:
            if isinstance(images, Tensor) and images.ndim == 4 and any(side % patch for side in images.shape[-2:]):
                raise ValueError(f"patches of {patch} do not divide images of {list(images.shape[-2:])}")

    if isinstance(getattr(model, "embed", None), nn.Module):
        model.embed.register_forward_pre_hook(refuse)


def convolution_and_embedding(
    PatchEmbedding: Callable[..., nn.Module], as_convolution: Callable[..., Any], sizes: Sequence[int], frozen: bool
) -> dict[str, list[bool]]:
    """Which parameters of an embedding want a gradient, `before` and `after` its convolution was made."""
    embedding = PatchEmbedding(*sizes)
    embedding.requires_grad_(not frozen)
    before = [parameter.requires_grad for parameter in embedding.parameters()]
    as_convolution(embedding)
    return {"before": before, "after": [parameter.requires_grad for parameter in embedding.parameters()]}


def train_on(
    make: Callable[..., nn.Module], train_classifier: Callable[..., Any], images: Tensor, labels: Tensor, steps: int
) -> nn.Module:
    """`ViT(**SMALL)` after so many steps on these images, with the student's function and its own defaults."""
    model = make(**SMALL)
    batches = LongEpoch(loader(images, labels, batch_size=SMALL_BATCH), steps)
    call(train_classifier, model, batches, epochs=1, steps=steps)
    return model.eval()


def trained_deeply(
    train_classifier: Callable[..., Any], images: Tensor, labels: Tensor, batch_size: int, epochs: int
) -> nn.Module:
    """A model of several parts, made from seed 0, after the student's training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = DeepModel(images.shape[-1], int(labels.max()) + 1)
        batches = [*zip(images.split(batch_size), labels.split(batch_size), strict=True)]
        call(train_classifier, model, batches, epochs=epochs, steps=epochs * len(batches))
    return model


def watched_efficiency(
    data_efficiency: Callable[..., Any],
    sizes: Sequence[int],
    steps: int,
    images: Tensor,
    labels: Tensor,
    held_out: Tensor,
    held_out_labels: Tensor,
) -> dict[str, Any]:
    """What the function finds where these images take the place of the digits, and its models.

    `result`: what the function returns; `runs`: see `Notes.told`; `models`: the models themselves, in
    the same order. A model is being trained where it is called in training mode with gradients switched on.
    """
    drawn = Images(images, labels, DIGITS), Images(held_out, held_out_labels, DIGITS)
    inside: list[nn.Module] = []

    def before(module: nn.Module, _args: Any) -> None:
        inside.append(module)

    def after(module: nn.Module, args: Any, output: Any) -> None:
        while inside and inside.pop() is not module:  # some were left by an exception
            pass
        shown = args[0] if args and isinstance(args[0], Tensor) else None
        if inside or shown is None or shown.shape[1:] != DIGIT or not isinstance(output, Tensor):
            return
        if output.shape != (len(shown), SIZES["n_classes"]):
            return
        if module.training and torch.is_grad_enabled():
            notes.trains(module, shown)
        else:
            notes.asks(module, shown)

    with _in_the_place_of_digits(drawn, inspect.unwrap(data_efficiency).__globals__):
        notes = Notes()
        hooks = [register_module_forward_pre_hook(before), register_module_forward_hook(after)]
        try:
            result = efficiency(data_efficiency, sizes, steps)
        finally:
            for hook in hooks:
                hook.remove()
    return {"result": result, "runs": notes.told(), "models": notes.models}


@contextmanager
def _in_the_place_of_digits(drawn: tuple[Images, Images], world: dict[str, Any]) -> Iterator[None]:
    """While this is open `mnist5k()` gives these images, and names for the digits in `world` stand for them too."""
    digits = [tensor for part in mnist5k() for tensor in part[:2]]
    pairs = [*zip(digits, [tensor for part in drawn for tensor in part[:2]], strict=True)]

    def other(value: Any) -> Any:
        if isinstance(value, Images):
            return Images(other(value.images), other(value.labels), value.classes)
        if isinstance(value, Tensor):
            return next((new for old, new in pairs if torch.equal(old, value)), value)
        return value

    kept, split = dict(world), image_data._split
    world.update({name: other(value) for name, value in kept.items() if isinstance(value, Images | Tensor)})
    image_data._split = lambda *_: drawn
    try:
        yield
    finally:
        image_data._split = split
        world.update({name: value for name, value in kept.items() if isinstance(value, Images | Tensor)})


class PlainHead(nn.Module):
    """The MAP head of these parts, with its attention called once, for all images."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.probe, self.attn, self.norm, self.mlp = head.probe, head.attn, head.norm, head.mlp

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """x [B, N, D], key_padding_mask bool [B, N] (True = padding) -> [B, D]."""
        z: Tensor = self.attn(self.probe.expand(len(x), -1, -1), x, x, key_padding_mask)[0][:, 0]
        return z + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm(z)), approximate="tanh"))


def made_audible(model: Any, images: Tensor) -> bool:
    """See to it that a model is `audible`: a head that computes its attention in another way gets another forward pass.

    The parts stay the same. Gives whether it was needed.
    """
    if audible(model, images):
        return False
    model.map_head = PlainHead(model.map_head)
    return True
