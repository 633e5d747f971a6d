"""Can a label be told without reading? What a linear classifier finds in counts of words or in lengths.

A contrastive task is worth training on where the label needs both sides. These measures look at one side alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.hw6.stories import Document

Example = Sequence[Any]  # first, second, label
FOLDS = 5


def counts(sentences: Sequence[Sequence[int]]) -> Tensor:
    """How often each token comes in each sentence: [n, tokens]."""
    tokens = torch.tensor([token for sentence in sentences for token in sentence], dtype=torch.long)
    rows = torch.arange(len(sentences)).repeat_interleave(torch.tensor([len(sentence) for sentence in sentences]))
    kinds, columns = tokens.unique(return_inverse=True)
    width = max(len(kinds), 1)
    return torch.bincount(rows * width + columns, minlength=len(sentences) * width).view(-1, width).double()


def linear_accuracy(features: Tensor, labels: Tensor, ridge: float = 1.0) -> float:
    """How often least squares on the features [n, F] tells the labels, bool [n], of examples that it has not seen."""
    n, signs = len(labels), labels.double() * 2 - 1
    x = torch.cat([(features - features.mean(0)) / features.std(0).clamp_min(1e-9), torch.ones(n, 1).double()], 1)
    fold, right = torch.arange(n) % FOLDS, 0.0
    for i in range(FOLDS):
        seen, new = x[fold != i], x[fold == i]
        gram = seen.T @ seen + ridge * torch.eye(x.shape[1], dtype=torch.float64)
        weights = torch.linalg.solve(gram, seen.T @ signs[fold != i])
        right += float(((new @ weights > 0) == labels[fold == i]).sum())
    return right / n


def leaks(examples: Sequence[Example], seed: int = 0) -> dict[str, float]:
    """What can be told from `first` alone, from `second` alone and from the two lengths, as shares of right guesses."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed)).tolist()
    examples = [examples[i] for i in order]
    labels = torch.tensor([bool(label) for _, _, label in examples])
    lengths = torch.tensor([[len(first), len(second)] for first, second, _ in examples], dtype=torch.float64)
    return {
        "first": linear_accuracy(counts([first for first, _, _ in examples]), labels),
        "second": linear_accuracy(counts([second for _, second, _ in examples]), labels),
        "lengths": linear_accuracy(lengths, labels),
    }


def shared_words(examples: Sequence[Example]) -> float:
    """What a bag of words can tell: the best guess from the number of words that the two sentences share."""
    labels = torch.tensor([bool(label) for _, _, label in examples])
    shared = torch.tensor([len(set(first) & set(second)) for first, second, _ in examples])
    return linear_accuracy(torch.nn.functional.one_hot(shared).double(), labels)


def is_next_sentence(examples: Sequence[Example], documents: Sequence[Document]) -> bool:
    """Next-sentence prediction: one label means "the true successor", the other "from another document"."""
    places: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for d, document in enumerate(documents):
        for i, sentence in enumerate(document):
            places.setdefault(tuple(sentence), set()).add((d, i))
    follows, foreign = {True: [0, 0], False: [0, 0]}, {True: [0, 0], False: [0, 0]}
    for first, second, label in examples:
        a, b = places.get(tuple(first), set()), places.get(tuple(second), set())
        successor = any((d, i + 1) in b for d, i in a)
        elsewhere = bool(b) and not {d for d, _ in a} & {d for d, _ in b}
        for table, hit in ((follows, successor), (foreign, elsewhere)):
            table[bool(label)][0] += hit
            table[bool(label)][1] += 1

    def share(table: dict[bool, list[int]], label: bool) -> float:
        return table[label][0] / max(table[label][1], 1)

    return any(share(follows, label) >= 0.9 and share(foreign, not label) >= 0.8 for label in (True, False))
