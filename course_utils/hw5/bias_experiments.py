"""ViT against CNN in homework 5: what data_efficiency found, and experiments on what a model takes for granted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def read_efficiency(found: Any, sizes: Sequence[int]) -> dict[str, list[float]]:
    """{"vit": accuracies, "cnn": accuracies} in the order of the sizes, from any sensible dictionary that says so.

    The outer keys are the models (in any case, with more letters around) or the sizes; inside stand lists in the
    order of the sizes, or dictionaries by size or by model. Raises a ValueError with a sentence if it cannot be read.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"data_efficiency returns a dict, not a {type(found).__name__}")
    if all(size in found for size in sizes) and all(isinstance(found[size], Mapping) for size in sizes):
        found = {name: {size: _named(found[size], name) for size in sizes} for name in ("vit", "cnn")}
    result = {}
    for name in ("vit", "cnn"):
        values = _named(found, name)
        if isinstance(values, Mapping):
            if any(size not in values for size in sizes):
                raise ValueError(f"the accuracies of {name} lack a size out of {list(sizes)}")
            values = [values[size] for size in sizes]
        if not hasattr(values, "__len__"):
            raise ValueError(f"{name} has no list of accuracies, one for each size")
        if len(values) != len(sizes):
            raise ValueError(f"{name} has {len(values)} accuracies for {len(sizes)} sizes")
        result[name] = [float(value) for value in values]
    return result


def _named(found: Mapping[Any, Any], name: str) -> Any:
    keys = [key for key in found if isinstance(key, str) and name in key.lower()]
    if len(keys) != 1:
        raise ValueError(f'the dict has the keys "vit" and "cnn", but here are {[*found]}')
    return found[keys[0]]


def shift(images: Tensor, down: int, right: int) -> Tensor:
    """Move the images [..., H, W]; what leaves at one side comes back at the other, so nothing is lost."""
    return images.roll((down, right), (-2, -1))


def reach(features: Callable[[Tensor], Tensor], images: Tensor, row: int, col: int) -> Tensor:
    """How far each pixel moves the features at one place: images [B, C, H, W] -> [H, W], the size of the Jacobian.

    `features` maps images to [B, D, rows, cols]. Random directions in the D features stand for all of them.
    """
    images = images.clone().requires_grad_()
    place = features(images)[:, :, row, col]  # [B, D]
    total = torch.zeros_like(images)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        direction = torch.randn(place.shape, generator=generator, dtype=place.dtype).to(place.device)
        (gradient,) = torch.autograd.grad(place, images, direction, retain_graph=True)
        total += gradient.square()
    return total.mean((0, 1)).sqrt()


def last_feature_map(model: nn.Module, images: Tensor) -> Tensor:
    """What the last convolution of a model gives, [B, D, rows, cols], whatever the model calls it."""
    seen: list[Tensor] = []
    hooks = [
        module.register_forward_hook(lambda _module, _args, output: seen.append(output))
        for module in model.modules()
        if isinstance(module, nn.Conv2d)
    ]
    if not hooks:
        raise ValueError("this model has no nn.Conv2d")
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return seen[-1]
