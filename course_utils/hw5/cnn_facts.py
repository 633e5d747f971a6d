"""What can be told about a convolutional classifier without training it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.checking.beside import fact
from course_utils.hw5.vision import SIZES, build


@fact
def cnn_facts(make: Callable[..., nn.Module]) -> dict[str, Any]:
    """Facts about a model for the digits.

    `parameters`: how many numbers it learns; `kernels`: the kernel of each convolution that a call uses, in order;
    `shape`: of the logits of two images; `reach`: the share of an image's pixels that move one place of the first
    convolution's map with a kernel above 1; `shift`: how far that map is from moving along with the image, relative to
    its size (both None where there is no such convolution); `bend`: how far the logits f are from f(a + b) = f(a) +
    f(b) - f(0), relative to their size, which is 0 for a model without a non-linearity; `unused`: parameters that no
    gradient reaches; `repeats`: whether two calls in evaluation mode agree; `pools`: whether some pooling or stride
    makes the maps smaller on their way to the logits; `idle`: how many convolutions have filters without a gradient.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build(make).eval()
        images = torch.rand(2, SIZES["channels"], SIZES["image_size"], SIZES["image_size"])
    layers, _ = _convolutions(model, images)
    logits = model(images)
    direction = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    (logits * direction).sum().backward()
    wide = [n for n, layer in enumerate(layers) if max(layer.kernel_size) > 1]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "kernels": [tuple(layer.kernel_size) for layer in layers],
        "shape": tuple(logits.shape),
        "reach": _reach(model, images, wide[0]) if wide else None,
        "shift": _shift_error(model, layers[wide[0]], wide[0]) if wide else None,
        "bend": _bend(model),
        "unused": [name for name, parameter in model.named_parameters() if parameter.grad is None],
        "repeats": torch.equal(model(images), logits),
        "pools": _pools(model, images),
        "idle": sum(layer.weight.grad is None or not layer.weight.grad.any() for layer in layers),
    }


def _convolutions(model: nn.Module, images: Tensor) -> tuple[list[nn.Conv2d], list[Tensor]]:
    """The convolutions that a call uses, in the order of their use, and what they give."""
    seen: list[tuple[nn.Conv2d, Tensor]] = []
    hooks = [
        layer.register_forward_hook(lambda module, _args, output: seen.append((module, output)))
        for layer in model.modules()
        if isinstance(layer, nn.Conv2d)
    ]
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return [layer for layer, _ in seen], [output for _, output in seen]


def _reach(model: nn.Module, images: Tensor, number: int) -> float:
    images = images.clone().requires_grad_()
    features = _convolutions(model, images)[1][number]  # [B, D, rows, cols]
    rows, cols = features.shape[-2:]
    (gradient,) = torch.autograd.grad(features[:, :, rows // 2, cols // 2].square().sum(), images)
    return (gradient.abs().amax((0, 1)) > 0).double().mean().item()


def _pools(model: nn.Module, images: Tensor) -> bool:
    """Whether a stride, or something between two convolutions or behind the last one, makes a map smaller."""
    maps: list[tuple[nn.Conv2d, Tensor, Tensor]] = []
    linears: list[int] = []  # behind the last convolution

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(module, nn.Conv2d):
            maps.append((module, args[0], output))
            linears.clear()
        elif isinstance(module, nn.Linear):
            linears.append(module.in_features)

    hooks = [part.register_forward_hook(hook) for part in model.modules()]
    try:
        model(images)
    finally:
        for handle in hooks:
            handle.remove()
    if not maps or any(max(layer.stride) > 1 for layer, _, _ in maps):
        return bool(maps)
    places = [(given[0, 0].numel(), made[0, 0].numel()) for _, given, made in maps]
    between = any(given < made for (_, made), (given, _) in itertools.pairwise([(0, images[0, 0].numel()), *places]))
    return between or maps[-1][2][0].numel() not in linears


@torch.no_grad()
def _bend(model: nn.Module) -> float:
    """How far the model is from an affine map, on images of noise: additivity, since a ReLU alone is homogeneous."""
    shape = (4, SIZES["channels"], SIZES["image_size"], SIZES["image_size"])
    a, b = torch.randn(2, *shape, generator=torch.Generator().manual_seed(2))
    both, one, other, none = (model(x) for x in (a + b, a, b, torch.zeros_like(a)))
    size = max((logits - none).abs().max().item() for logits in (both, one, other))
    return (both - one - other + none).abs().max().item() / max(size, 1e-12)


@torch.no_grad()
def _shift_error(model: nn.Module, layer: nn.Conv2d, number: int) -> float:
    """A blob in the middle, and the same one stride further down and right: do the maps agree one place further?"""
    down, right = (int(step) for step in layer.stride)
    side = SIZES["image_size"]
    image = torch.zeros(1, SIZES["channels"], side, side)
    image[:, :, 10:17, 9:16] = torch.rand(7, 7, generator=torch.Generator().manual_seed(1))
    before, after = (_convolutions(model, x)[1][number] for x in (image, image.roll((down, right), (-2, -1))))
    return ((after[..., 2:-1, 2:-1] - before[..., 1:-2, 1:-2]).abs().max() / before.std().clamp_min(1e-12)).item()
