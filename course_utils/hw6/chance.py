"""Answers that need chance, run beside it: seeds go in, what was drawn comes out."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.hw6.stories import Document


def masked(
    mask_tokens: Callable[..., Any],
    ids: Tensor,
    mask_id: int,
    vocab_size: int,
    special_ids: Collection[int],
    p: float | None,
    seed: int,
    calls: int = 1,
    elsewhere: int = 0,
) -> list[Any]:
    """What `calls` calls with one generator give; `elsewhere` seeds torch's own numbers, and p=None leaves p out."""
    torch.manual_seed(elsewhere)
    generator = torch.Generator().manual_seed(seed)
    more = {} if p is None else {"p": p}
    return [mask_tokens(ids, mask_id, vocab_size, special_ids, generator=generator, **more) for _ in range(calls)]


def masked_by_torchs_own(
    mask_tokens: Callable[..., Any], ids: Tensor, mask_id: int, vocab_size: int, special_ids: Collection[int], seed: int
) -> Any:
    """What a call without a generator gives after torch was seeded."""
    torch.manual_seed(seed)
    return mask_tokens(ids, mask_id, vocab_size, special_ids)


def stream_moved(
    mask_tokens: Callable[..., Any], ids: Tensor, mask_id: int, vocab_size: int, special_ids: Collection[int]
) -> bool:
    """Whether a call with a generator moves torch's own random numbers."""
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    mask_tokens(ids, mask_id, vocab_size, special_ids, generator=torch.Generator().manual_seed(1))
    return not torch.equal(torch.rand(4), expected)


def pairs(
    sentence_pairs: Callable[..., Any], documents: Sequence[Document], seed: int, times: int = 1, elsewhere: int = 0
) -> list[Any]:
    """What `times` calls with one `random.Random` give, each as a list of [first, second, is_next].

    `elsewhere` seeds the random numbers that are nobody's business here: Python's and torch's own.
    """
    rng = random.Random(seed)
    random.seed(elsewhere)
    torch.manual_seed(elsewhere)
    return [[list(pair) for pair in sentence_pairs(documents, rng)] for _ in range(times)]


def kept(sentence_pairs: Callable[..., Any], documents: Sequence[Document], seed: int) -> bool:
    """Whether the documents are the same after a call as before it."""
    before = copy.deepcopy(documents)
    sentence_pairs(documents, random.Random(seed))
    return before == documents


def tasks(my_tasks: Callable[[], Any], documents: list[Document], seed: int) -> dict[str, Any]:
    """The two tasks' examples, once more from the same seed, and whether the documents stayed as they were."""
    before = copy.deepcopy(documents)
    both = my_tasks()
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        raise ValueError("my_tasks must return two functions, task_1 and task_2")
    first = [[list(example) for example in task(documents, random.Random(seed))] for task in both]
    again = [[list(example) for example in task(documents, random.Random(seed))] for task in both]
    return {"examples": first, "again": again == first, "kept": documents == before}
