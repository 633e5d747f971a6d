"""Run a KV cache token by token, beside the student's code, and note what came out and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.work import count_work

Step = Callable[[nn.Module, Tensor, Any], Any]


def decode_stepwise(cached_step: Step, make_cache: Callable[[], Any], mha: nn.Module, x: Tensor) -> list[Any]:
    """What `cached_step` gives for each token of x [B, N, D], one cache handed on from step to step."""
    return decode_together(cached_step, make_cache, mha, [x])[0]


@torch.no_grad()
def decode_together(
    cached_step: Step, make_cache: Callable[[], Any], mha: nn.Module, sequences: Sequence[Tensor]
) -> list[list[Any]]:
    """The same for several sequences of equal length in turns, a token each, every one with a cache of its own."""
    caches = [make_cache() for _ in sequences]
    outputs: list[list[Any]] = [[] for _ in sequences]
    for t in range(sequences[0].shape[1]):
        for i, x in enumerate(sequences):
            out, caches[i] = _step(cached_step, mha, x[:, t : t + 1], caches[i])
            outputs[i].append(out)
    return outputs


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
        out, cache = _step(cached_step, mha, x[:, t : t + 1], cache)
        outputs.append(out)
    return outputs


@torch.no_grad()
def work_per_step(
    cached_step: Step, make_cache: Callable[[], Any], mha: nn.Module, x: Tensor, lengths: Sequence[int]
) -> list[dict[str, int]]:
    """What the step costs that brings the sequence to each of these lengths (ascending)."""
    cache, found = make_cache(), []
    for t in range(lengths[-1]):
        given = {"cache": cache}

        def step(t: int = t, given: dict[str, Any] = given) -> None:
            _, given["cache"] = _step(cached_step, mha, x[:, t : t + 1], given["cache"])

        if t + 1 in lengths:
            found.append(count_work(step))
        else:
            step()
        cache = given["cache"]
    return found


def shared_state(make_cache: Callable[[], Any]) -> list[str]:
    """The attributes of two new caches that are one and the same list, dict or set."""
    a, b = make_cache(), make_cache()
    names = [name for name in dir(a) if not name.startswith("__")]
    return [n for n in names if isinstance(getattr(a, n), list | dict | set) and getattr(a, n) is getattr(b, n, None)]


def _step(cached_step: Step, mha: nn.Module, x_t: Tensor, cache: Any) -> tuple[Any, Any]:
    got = cached_step(mha, x_t, cache)
    if not (isinstance(got, tuple | list) and len(got) == 2):
        raise TypeError(f"cached_step gave a {type(got).__name__}, expected the pair (out, cache)")
    return got[0], got[1]
