"""Run an answer beside the student's code and tell, besides what it returns, what it did on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.work import count_work


def with_arguments(f: Callable[..., Any], *args: Any) -> tuple[Any, list[Any]]:
    """The result of f(*args), and the arguments as they are afterwards: lists may have changed."""
    return f(*args), list(args)


def gradient_norms(model: nn.Module, *args: Any) -> dict[str, float]:
    """How long the gradient of each parameter is when model(*args) is pulled towards zero."""
    model.zero_grad()
    model(*args).square().mean().backward()
    return {name: 0.0 if p.grad is None else float(p.grad.norm()) for name, p in model.named_parameters()}


def loose_tensors(make: Callable[..., nn.Module], *sizes: int) -> int:
    """How many tensors a new module holds that are neither parameters nor buffers, and would not move with it."""
    return sum(isinstance(value, Tensor) for part in make(*sizes).modules() for value in vars(part).values())


def encoder_rows(decode: Callable[..., Any], model: nn.Module, src: Tensor, *args: Any) -> tuple[Any, list[int]]:
    """The result of decode(model, src, *args), and how many sentences went into each layer of the encoder."""
    rows = [0] * len(model.encoder_layers)  # type: ignore[arg-type]
    handles = []

    def counted(number: int) -> Callable[..., None]:
        def hook(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            tensors = [value for value in (*given, *named.values()) if isinstance(value, Tensor)]
            rows[number] += len(tensors[0]) if tensors else 1

        return hook

    for number, layer in enumerate(model.encoder_layers):  # type: ignore[arg-type]
        handles.append(layer.register_forward_pre_hook(counted(number), with_kwargs=True))
    try:
        return decode(model, src, *args), rows
    finally:
        for handle in handles:
            handle.remove()


def decoder_runs(decode: Callable[..., Any], model: nn.Module, *args: Any) -> tuple[Any, int]:
    """The result of decode(model, *args), and how often the first layer of the decoder was called."""
    runs = [0]

    def hook(*_: Any) -> None:
        runs[0] += 1

    handle = model.decoder_layers[0].register_forward_pre_hook(hook)  # type: ignore[index, union-attr]
    try:
        return decode(model, *args), runs[0]
    finally:
        handle.remove()


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


@torch.no_grad()
def decoding_work(
    decode: Callable[..., Any],
    model: nn.Module,
    src: Tensor,
    src_padding: Tensor,
    bos_id: int,
    eos_id: int,
    lengths: Sequence[int],
) -> list[tuple[list[int], int]]:
    """For each `max_len`: how many tokens each sentence got, and the floating-point operations that it took."""
    found = []
    for length in lengths:
        given: dict[str, Any] = {}

        def run(length: int = length, given: dict[str, Any] = given) -> None:
            given["rows"] = decode(model, src, src_padding, bos_id, eos_id, length)

        flops = count_work(run)["flops"]
        found.append(([len(row) for row in given["rows"]], flops))
    return found
