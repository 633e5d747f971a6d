"""The pretraining run of homework 6: batches from stories, sizes, and the task that fine-tuning is tried on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_utils.hw6.stories import CLS, MASK, PAD, SEP, SPECIAL_IDS, Document, encoded, stories, words

MAX_LEN = 32  # tokens of two packed sentences; the longest here have 27
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2, "max_len": MAX_LEN}
STEPS, BATCH, RATE, BETAS = 1_500, 64, 2e-3, (0.9, 0.98)  # of the notebook's run
CHECKPOINT = "hw6_pretraining.safetensors"

Packed = tuple[list[int], list[int]]
Examples = tuple[Tensor, Tensor, Tensor]  # ids, segments, key_padding_mask, each [B, N]


class Batch(NamedTuple):
    """One step's work: masked ids, segments, padding and labels [B, N], is_next [B]."""

    inputs: Tensor
    segments: Tensor
    padding: Tensor
    labels: Tensor
    is_next: Tensor


def padded(packed: Sequence[Packed], to: int | None = None) -> Examples:
    """Packed pairs as tensors [B, N], filled up on the right; the mask is True at padding."""
    width = max([to or 0, *(len(ids) for ids, _ in packed)])
    lengths = torch.tensor([len(ids) for ids, _ in packed])
    ids, segments = (torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.long)
                     for rows, fill in (([ids for ids, _ in packed], PAD), ([s for _, s in packed], 0)))
    return ids, segments, torch.arange(width) >= lengths[:, None]


def make_batches(
    documents: Sequence[Document],
    sentence_pairs: Callable[..., Any],
    pack: Callable[..., Any],
    mask_tokens: Callable[..., Any],
    vocab_size: int,
    steps: int = STEPS,
    size: int = BATCH,
    seed: int = 0,
) -> Iterator[Batch]:
    """`steps` batches by the functions of 6.1 and 6.2; pairs and masks are drawn anew in every epoch."""
    rng, generator, pairs = random.Random(seed), torch.Generator().manual_seed(seed), list[Any]()
    for _ in range(steps):
        if len(pairs) < size:
            pairs = list(sentence_pairs(documents, rng))
            rng.shuffle(pairs)
        taken, pairs = pairs[:size], pairs[size:]
        ids, segments, padding = padded([pack(first, second, CLS, SEP, MAX_LEN) for first, second, _ in taken])
        inputs, labels = mask_tokens(ids, MASK, vocab_size, SPECIAL_IDS, generator=generator)
        yield Batch(inputs, segments, padding, labels, torch.tensor([bool(label) for _, _, label in taken]))


def rate_at(step: int, steps: int, rate: float = RATE) -> float:
    """The learning rate of a step, counted from 1: up over a tenth of the run, then down towards zero."""
    return rate * min(step / (0.1 * steps), (steps + 1 - step) / (0.9 * steps))


def build_model(make_model: Callable[..., nn.Module], vocab_size: int | None = None) -> nn.Module:
    """A `BERT` of the stated sizes, for the words of the stories or as many as told."""
    return make_model(vocab_size or len(words()), **SIZES)


def order_task(n: int, seed: int) -> tuple[Examples, Tensor]:
    """n pairs of neighbouring sentences, each of another story: label 1 where they are told in their order, else 0."""
    rng, packed, labels = random.Random(f"order {seed}"), list[Packed](), list[int]()
    for document in encoded(stories(n, seed)):
        i = rng.randrange(len(document) - 1)
        pair, in_order = document[i : i + 2], rng.random() < 0.5
        first, second = pair if in_order else pair[::-1]
        packed.append(([CLS, *first, SEP, *second, SEP], [0] * (len(first) + 2) + [1] * (len(second) + 1)))
        labels.append(int(in_order))
    return padded(packed), torch.tensor(labels)


@torch.no_grad()
def accuracy(classifier: Callable[..., Tensor], examples: Sequence[Tensor | None], labels: Tensor) -> float:
    """The share of right answers."""
    return (classifier(*examples).argmax(-1) == labels).double().mean().item()
