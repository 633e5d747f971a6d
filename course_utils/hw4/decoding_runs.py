"""Decode beside the student's code and tell, besides what comes out, what ran on the way and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.instruments.work import count_work


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


def decode_and_leave(decode: Callable[..., Any], model: nn.Module, *args: Any) -> dict[str, Any]:
    """Call decode(model, *args) for a model in evaluation mode, and tell what it has left behind.

    `woken`: parts that are in training mode now; `changed`: parameters with other numbers; `frozen`: those that no
    longer want a gradient; `grad`: whether gradients are still switched on.
    """
    model.eval()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    with torch.enable_grad():
        decode(model, *args)
        grad = torch.is_grad_enabled()
    now = dict(model.named_parameters())
    return {
        "woken": [name or "the model" for name, part in model.named_modules() if part.training],
        "changed": [name for name, value in before.items() if not torch.equal(now[name].detach(), value)],
        "frozen": [name for name, parameter in now.items() if not parameter.requires_grad],
        "grad": grad,
    }


@torch.no_grad()
def decoding_work(decode: Callable[..., Any], args: Sequence[Any], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """What decode(*args, max_len) costs for each `max_len`, and its `result`."""
    return [count_work(decode, *args, length) for length in lengths]
