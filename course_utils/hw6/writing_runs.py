"""Run the parts of a language model beside the answers, and note what came out and what was called on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.hw6.echo import echo
from course_utils.instruments.work import count_work


@torch.no_grad()
def in_chunks(model: nn.Module, ids: Tensor, lengths: Sequence[int], padding: Tensor | None = None) -> list[Any]:
    """The logits of each chunk of ids [B, N], one cache handed on; `padding` [B, N] is cut to the tokens so far."""
    cache, start, outputs = model.new_cache(), 0, []  # type: ignore[operator]
    for length in lengths:
        end = start + length
        mask = None if padding is None else padding[:, :end]
        outputs.append(model(ids[:, start:end], mask, cache))
        start = end
    return outputs


def two_caches(model: nn.Module, first: Tensor, second: Tensor) -> tuple[list[Any], list[Any]]:
    """Two texts [B, N] of equal length in turns, a token each, every one with a cache of its own."""
    caches, outputs = [model.new_cache(), model.new_cache()], ([], [])  # type: ignore[operator, var-annotated]
    with torch.no_grad():
        for t in range(first.shape[1]):
            for ids, cache, found in zip((first, second), caches, outputs, strict=True):
                found.append(model(ids[:, t : t + 1], None, cache))
    return outputs


@torch.no_grad()
def chunk_work(model: nn.Module, ids: Tensor, lengths: Sequence[int], padding: Tensor | None = None) -> dict[str, Any]:
    """What the last chunk costs, and its logits as `result`."""
    cache, start, work = model.new_cache(), 0, {}  # type: ignore[operator]
    for length in lengths:
        end = start + length
        mask = None if padding is None else padding[:, :end]
        work = count_work(model, ids[:, start:end], mask, cache)
        start = end
    return work


def write_with_echo(
    sample: Callable[..., Any],
    weights: dict[str, Tensor],
    prompts: list[list[int]],
    n: int,
    options: dict[str, Any] | None = None,
    seeds: Sequence[int] = (),
    training: bool = False,
    dropout: float = 0.0,
) -> dict[str, Any]:
    """`sample` with an Echo of these weights; one run for each seed of a generator, or one without a generator.

    What comes back: the `results`; the numbers of tokens in each call of the model (`calls`, [B, T] each); whether the
    calls were in training mode or with gradients (`trained`, `recorded`); the model's mode afterwards (`training`);
    whether torch's global generator and the prompts are as before (`untouched`, `kept`); and what was raised (`error`).
    """
    model = echo(weights, dropout=dropout).train(training)
    told: dict[str, Any] = {"calls": [], "trained": False, "recorded": False, "results": [], "error": None}
    forward, before = model.forward, [list(prompt) for prompt in prompts]

    def heard(ids: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        told["calls"].append(list(ids.shape))
        told["trained"] |= model.training
        told["recorded"] |= torch.is_grad_enabled()
        return forward(ids, *args, **kwargs)

    model.forward = heard  # type: ignore[method-assign]
    state = torch.get_rng_state()
    try:
        for seed in seeds or [None]:  # type: ignore[list-item]
            given = {} if seed is None else {"generator": torch.Generator().manual_seed(seed)}
            told["results"].append(sample(model, prompts, n, **(options or {}), **given))
    except NotImplementedError:
        raise
    except Exception as error:
        told["error"] = [kind.__name__ for kind in type(error).__mro__]
    told["untouched"] = bool(torch.equal(state, torch.get_rng_state()))
    told |= {"training": model.training, "kept": prompts == before}
    return told


def from_one_generator(
    sample: Callable[..., Any], weights: dict[str, Tensor], prompts: list[list[int]], n: int, seed: int, times: int
) -> list[Any]:
    """Several calls of `sample` one after another, with one generator."""
    model, generator = echo(weights), torch.Generator().manual_seed(seed)
    return [sample(model, prompts, n, generator=generator) for _ in range(times)]


def perplexity_of_echo(
    perplexity: Callable[..., Any],
    weights: dict[str, Tensor],
    ids: Tensor,
    training: bool = False,
    dropout: float = 0.0,
) -> tuple[Any, bool, bool, bool]:
    """The result with an Echo of these weights; its mode afterwards; whether a call was trained, or recorded."""
    model = echo(weights, dropout=dropout).train(training)
    forward, trained, recorded = model.forward, [False], [False]

    def heard(*args: Any, **kwargs: Any) -> Tensor:
        trained[0] |= model.training
        recorded[0] |= torch.is_grad_enabled()
        return forward(*args, **kwargs)

    model.forward = heard  # type: ignore[method-assign]
    return perplexity(model, ids), model.training, trained[0], recorded[0]
