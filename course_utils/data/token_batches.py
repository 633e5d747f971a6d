"""Batches of sentences of like length, as many as fit into a number of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


def token_batches(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], most: int, seed: int = 0, start: int = 0
) -> Iterator[list[int]]:
    """Rows of batches without end, beginning with number `start`, counted from 0.

    A batch padded to its longest sentence has at most `most` tokens on each side, or one sentence. Which rows it has
    depends on the seed and its number alone, so that a run can go on where another stopped.
    """
    if not sources or len(sources) != len(targets):
        raise ValueError(f"batches need pairs, not {len(sources)} sources and {len(targets)} targets")
    longest = [max(len(a), len(b) + 1) for a, b in zip(sources, targets, strict=True)]  # + 1: BOS or EOS
    epoch = 0
    while True:
        batches = _epoch(longest, most, random.Random(f"{seed}/{epoch}"))
        yield from batches[start:]
        start, epoch = max(0, start - len(batches)), epoch + 1


def _epoch(longest: Sequence[int], most: int, rng: random.Random) -> list[list[int]]:
    """Every row once: rows of like length together, and the batches in any order."""
    rows = sorted(range(len(longest)), key=lambda row: longest[row] + rng.random() * 2)
    batches: list[list[int]] = []
    batch: list[int] = []
    width = 0
    for row in rows:
        if batch and max(width, longest[row]) * (len(batch) + 1) > most:
            batches.append(batch)
            batch, width = [], 0
        batch, width = [*batch, row], max(width, longest[row])
    batches.append(batch)
    rng.shuffle(batches)
    return batches
