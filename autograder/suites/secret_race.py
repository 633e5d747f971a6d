"""The race of `course_utils.hw3.patients` under other names: which token is whose, and which class, is drawn anew."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.hw3.patients import BATCH, RUNNERS, VOCAB, toy_batch


class SecretRace:
    """The race of `course_utils.hw3.patients`, its tokens and its classes renamed at random; padding stays 0."""

    def __init__(self, rng: torch.Generator) -> None:
        self._rng = rng
        self._tokens = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.randperm(VOCAB - 1, generator=rng)])
        self._classes = torch.randperm(RUNNERS, generator=rng)

    def draw(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """New (ids [n, 12], key_padding_mask [n, 12], labels [n])."""
        ids, padding, labels = toy_batch(self._rng, n)
        return self._tokens[ids], padding, self._classes[labels]

    def batches(self, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        """New races to train on, in small types."""
        ids, padding, labels = (x.unflatten(0, (steps, BATCH)) for x in self.draw(steps * BATCH))
        return ids.to(torch.uint8), padding, labels.to(torch.uint8)

    def shares(self, model: Callable[[Tensor, Tensor], Tensor], n: int) -> Tensor:
        """The share of right answers on n new races, for each runner who comes first."""
        ids, padding, labels = self.draw(n)
        with torch.no_grad():
            right = (model(ids, padding).argmax(-1) == labels).double()
        return torch.stack([right[labels == runner].mean() for runner in range(RUNNERS)])
