"""Homework 2 in the box: what a set holds, a cache whose module changes, caches that share their state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.hw2.kv_runs import Step, one_step


def positions_held(function: Callable[..., Any], argument: Any, n: int) -> list[bool]:
    """For each position from 0 to n - 1, whether `position in function(argument)`."""
    found = function(argument)
    return [position in found for position in range(n)]


@torch.no_grad()
def decode_with_new_weights(
    cached_step: Step,
    make_cache: Callable[[], Any],
    mha: nn.Module,
    x: Tensor,
    weights: dict[str, Tensor],
    switch: int,
) -> list[Any]:
    """What `cached_step` gives for each token of x [B, N, D]; from token `switch` on the module has these weights."""
    cache, outputs = make_cache(), []
    for t in range(x.shape[1]):
        if t == switch:
            mha.load_state_dict(mha.state_dict() | weights)
        out, cache = one_step(cached_step, mha, x[:, t : t + 1], cache)
        outputs.append(out)
    return outputs


def shared_state(make_cache: Callable[[], Any]) -> list[str]:
    """The attributes of two new caches that are one and the same list, dict or set."""
    a, b = make_cache(), make_cache()
    names = [name for name in dir(a) if not name.startswith("__")]
    return [n for n in names if isinstance(getattr(a, n), list | dict | set) and getattr(a, n) is getattr(b, n, None)]


def several_steps(cached_step: Callable[..., Any], mha: nn.Module, x: Tensor, cache: Any) -> tuple[Any, Any]:
    """The last step's output and the cache after the steps for all tokens of x [B, N, D]."""
    *_, out, cache = all_steps(cached_step, mha, x, cache)
    return out, cache


def all_steps(cached_step: Callable[..., Any], mha: nn.Module, x: Tensor, cache: Any) -> tuple[Any, ...]:
    """The outputs of the steps for all tokens of x [B, N, D], and behind them the cache."""
    outputs = []
    for t in range(x.shape[1]):
        out, cache = one_step(cached_step, mha, x[:, t : t + 1], cache)
        outputs.append(out)
    return (*outputs, cache)
