"""Run a KV cache token by token, beside the student's code, and note what came out and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.instruments.work import count_work

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
            out, caches[i] = one_step(cached_step, mha, x[:, t : t + 1], caches[i])
            outputs[i].append(out)
    return outputs


@torch.no_grad()
def work_per_step(
    cached_step: Step, make_cache: Callable[[], Any], mha: nn.Module, x: Tensor, lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """What the step costs, and its `result`, that brings the sequence to each of these lengths (ascending)."""
    cache, found = make_cache(), []
    for t in range(lengths[-1]):
        if t + 1 in lengths:
            work = count_work(one_step, cached_step, mha, x[:, t : t + 1], cache)
            out, cache = work["result"]
            found.append(work | {"result": out})
        else:
            _, cache = one_step(cached_step, mha, x[:, t : t + 1], cache)
    return found


def one_step(cached_step: Step, mha: nn.Module, x_t: Tensor, cache: Any) -> tuple[Any, Any]:
    got = cached_step(mha, x_t, cache)
    if not (isinstance(got, tuple | list) and len(got) == 2):
        raise TypeError(f"cached_step gave a {type(got).__name__}, expected the pair (out, cache)")
    return got[0], got[1]


@torch.no_grad()
def decode_while_weights_change(
    cached_step: Step, make_cache: Callable[[], Any], mha: nn.Module, x: Tensor, state: dict[str, Tensor]
) -> Any:
    """The output for the last token of x [B, N, D], before which the layer has got the weights of `state`."""
    cache = make_cache()
    for t in range(x.shape[1] - 1):
        _, cache = one_step(cached_step, mha, x[:, t : t + 1], cache)
    mha.load_state_dict({**mha.state_dict(), **state})
    return one_step(cached_step, mha, x[:, -1:], cache)[0]
