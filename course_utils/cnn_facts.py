"""What can be told about a convolutional classifier without training it, and a run of `data_efficiency`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.vision import SIZES, build, call

MARK = 0.0123456789  # what a stand-in for training leaves in every parameter
MOST = 500  # batches that it looks at


def cnn_facts(make: Callable[..., nn.Module]) -> dict[str, Any]:
    """Facts about a model for the digits.

    `parameters`: how many numbers it learns; `kernels`: the kernel of each convolution that a call uses, in order;
    `shape`: of the logits of two images; `reach`: the share of an image's pixels that move one place of the first
    convolution's map with a kernel above 1; `shift`: how far that map is from moving along with the image, relative to
    its size; `bend`: how far the logits f are from f(a + b) = f(a) + f(b) - f(0), relative to their size, which is 0
    for a model without a non-linearity; `unused`: parameters that no gradient reaches; `repeats`: whether two calls in
    evaluation mode agree.
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
        "reach": _reach(model, images, wide[0]) if wide else 1.0,
        "shift": _shift_error(model, layers[wide[0]], wide[0]) if wide else 1.0,
        "bend": _bend(model),
        "unused": [name for name, parameter in model.named_parameters() if parameter.grad is None],
        "repeats": torch.equal(model(images), logits),
    }


def efficiency(data_efficiency: Callable[..., Any], sizes: Sequence[int], steps: int) -> Any:
    """What the function finds for these sizes; a number of steps is offered to a function that has such a parameter."""
    return call(data_efficiency, list(sizes), steps=steps)


def efficiency_plan(data_efficiency: Callable[..., Any], sizes: Sequence[int]) -> dict[str, Any]:
    """What the function would do, with stand-ins for `train_classifier` and `evaluate` that only take notes.

    `trained`: for each training its model's class, its steps and how many different images; `further`: for each
    training whether its model came with the weights that an earlier one had left; `evaluated`: how many images each
    evaluation had; `result`: what is returned when the accuracies come out as 0.01, 0.02, 0.03, ...
    """
    trained: list[tuple[str, int, int]] = []
    further: list[bool] = []
    evaluated: list[int] = []

    def train_classifier(model: nn.Module, batches: Any, *_args: Any, **_options: Any) -> list[float]:
        images = [x.flatten(1).double() for x, _ in itertools.islice(batches, MOST)]
        distinct = torch.cat([x @ torch.arange(1.0, x.shape[1] + 1).double() for x in images]).unique()
        trained.append((type(model).__name__, len(images), len(distinct)))
        marked = [bool((parameter == MARK).all()) for parameter in model.parameters()]
        further.append(bool(marked) and all(marked))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(MARK)
        return [1.0, 0.5]

    def evaluate(_model: nn.Module, batches: Any, *_args: Any, **_options: Any) -> float:
        evaluated.append(sum(len(labels) for _, labels in batches))
        return len(evaluated) / 100

    world = data_efficiency.__globals__
    mine: dict[str, Any] = {"train_classifier": train_classifier, "evaluate": evaluate}
    before = {name: world[name] for name in mine if name in world}
    world.update(mine)
    try:
        result = call(data_efficiency, list(sizes), steps=3)
    finally:
        world.update(before)
    return {"trained": trained, "further": further, "evaluated": evaluated, "result": result}


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
