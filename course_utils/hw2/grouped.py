"""q2_13: what is looked at in the convolution that an answer makes of per-head matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def looks(as_grouped_convolution: Callable[[Tensor], Any], W: Tensor) -> dict[str, Any]:
    """The kind of module that comes back and its settings; None where it has none of that name."""
    made = as_grouped_convolution(W)
    kind = "Conv1d" if isinstance(made, nn.Conv1d) else type(made).__name__
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "groups")
    found = {name: getattr(made, name, None) for name in names}
    listed = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
    return {"kind": kind, **listed, "bias": getattr(made, "bias", None) is not None}


def copy_of_weights(as_grouped_convolution: Callable[[Tensor], Any], W: Tensor) -> dict[str, Any]:
    """The weight's dtype, whether it learns, whether it `follows` a change of W, and whether W follows (`leads`) it."""
    W = W.clone()
    made = as_grouped_convolution(W)
    weight = made.weight
    before = weight.detach().clone()
    with torch.no_grad():
        W += 1
        follows = not torch.equal(weight.detach(), before)
        W -= 1
        kept = W.clone()
        weight += 2
    trainable = isinstance(weight, nn.Parameter) and weight.requires_grad and weight.is_leaf
    return {
        "dtype": str(weight.dtype),
        "trainable": trainable,
        "follows": follows,
        "leads": not torch.equal(W.detach(), kept),
        "shape": list(weight.shape),
    }


def heeds_the_matrices(as_grouped_convolution: Callable[[Tensor], Any], W: Tensor) -> bool:
    """Whether other matrices give another weight, chance aside."""
    made = []
    for matrices in (W, 2 * W):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made.append(as_grouped_convolution(matrices.clone()).weight.detach().clone())
    return not torch.equal(*made)
