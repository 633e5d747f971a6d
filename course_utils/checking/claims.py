"""Claims that are tried on examples: what a claim is, and how the arguments of an example are read.

An example is a dict with a claim's arguments. Tensors may be float32 or float64 (or nested lists); everything is
computed in float64. Two results differ when they do so by more than TOLERANCE of their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

TOLERANCE = 1e-6
LARGEST_AXIS = 64  # of a tensor or list in an example
LARGEST_SCORE = 1e4  # beyond it rounding decides, and no longer the claim
LARGEST_ENTRY, SMALLEST_SIZE = 1e6, 1e-30  # the same for very large and very small results


@dataclass(frozen=True)
class Claim:
    """What is claimed, the arguments of an example with their shapes, and the function that tries it on one."""

    name: str
    text: str
    arguments: dict[str, str]
    tried_on: Callable[..., bool]

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.text}", *(f"    {k}: {v}" for k, v in self.arguments.items())])


def holds_among(claims: Mapping[str, Claim], name: str, example: Mapping[str, Any]) -> bool:
    """Whether the claim of that name is true of the example; a ValueError says what is wrong with an example."""
    if name not in claims:
        raise ValueError(f"there is no claim {name!r}; the claims are {', '.join(claims)}")
    claim = claims[name]
    expected = "; ".join(f"{key}: {what}" for key, what in claim.arguments.items())
    if not isinstance(example, Mapping) or set(example) != set(claim.arguments):
        found = sorted(map(str, example)) if isinstance(example, Mapping) else type(example).__name__
        raise ValueError(f"an example for {name} is a dict with these keys: {expected}; found {found}")
    try:
        return claim.tried_on(**example)
    except ValueError as error:
        raise ValueError(f"{name}: {error} (expected {expected})") from None


def attend(Q: Tensor, K: Tensor, V: Tensor, causal: bool = False) -> Tensor:
    """One head: [T, A], [S, A], [S, C] -> [T, C]."""
    scores = Q @ K.T / math.sqrt(Q.shape[1])  # [T, S]
    check_scores(scores)
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
    return scores.softmax(-1) @ V


def check_scores(scores: Tensor) -> None:
    """Refuse scores that are too large."""
    if not bool((scores.abs() <= LARGEST_SCORE).all()):
        raise ValueError(f"scores beyond {LARGEST_SCORE:g} leave everything to rounding: choose smaller numbers")


def equal(a: Tensor, b: Tensor, size: Tensor) -> bool:
    """Whether two results are the same, up to rounding of numbers of this size."""
    return bool((a - b).abs().amax() <= TOLERANCE * size.clamp(min=SMALLEST_SIZE))


def numbers(
    name: str, value: Any, axes: int, shape: tuple[int, ...] | None = None, largest: float = LARGEST_ENTRY
) -> Tensor:
    """The argument as a float64 tensor of the expected shape and of ordinary size."""
    try:
        found = torch.as_tensor(value).detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} is a {type(value).__name__} that is no tensor of numbers") from None
    if found.ndim != axes or (shape is not None and tuple(found.shape) != shape):
        wanted = list(shape) if shape is not None else f"{axes} axes"
        raise ValueError(f"{name} has shape {list(found.shape)}, not {wanted}")
    if 0 in found.shape or max(found.shape) > LARGEST_AXIS:
        raise ValueError(f"{name} has shape {list(found.shape)}: every axis must be from 1 to {LARGEST_AXIS}")
    if not bool((found.abs() <= largest).all()):
        raise ValueError(f"{name} has entries that are NaN or larger than {largest:g}")
    return found


def mask(name: str, value: Any, axes: int, shape: tuple[int, ...] | None = None, true: str = "blocked") -> Tensor:
    """The argument as a boolean tensor; `true` says what True means."""
    found = numbers(name, value, axes, shape)
    if not bool(((found == 0) | (found == 1)).all()):
        raise ValueError(f"{name} is no mask: its entries must be True ({true}) or False")
    return found.bool()


def count(name: str, value: Any, least: int = 1) -> int:
    """The argument as an int: a Python number or a 0-dim tensor without a fraction."""
    try:
        found = int(value)
        whole = bool(value == found)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{name} is a {type(value).__name__}, not a whole number") from None
    if not whole or found < least:
        raise ValueError(f"{name} = {value} is not a whole number from {least} on")
    return found
