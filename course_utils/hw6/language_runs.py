"""Language models of the stories: texts as tokens, a short training run, and how much a text repeats itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.hw6.stories import Story
from course_utils.notebook.bars import progress


def words_of(tales: Sequence[Story]) -> tuple[list[str], list[str]]:
    """The different words of some stories, sorted; and all their words one after another."""
    text = [word for tale in tales for sentence in tale.sentences for word in sentence]
    return sorted(set(text)), text


def characters_of(tales: Sequence[Story]) -> tuple[list[str], list[str]]:
    """The different characters of some stories, sorted; and all their characters, a space between words."""
    text = list(" ".join(words_of(tales)[1]))
    return sorted(set(text)), text


def ids_of(vocabulary: Sequence[str], text: Sequence[str]) -> Tensor:
    """Tokens to numbers, their places in the vocabulary: [N]."""
    places = {token: i for i, token in enumerate(vocabulary)}
    return torch.tensor([places[token] for token in text])


def train_language_model(
    model: nn.Module, ids: Tensor, steps: int, batch: int = 32, rate: float = 2e-3, seed: int = 0
) -> list[float]:
    """Train on pieces of the text ids [N], drawn anew for each step; the loss of each step. Ends in evaluation mode."""
    rng = torch.Generator().manual_seed(seed)
    length = int(model.max_len)  # type: ignore[arg-type]
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1, pct_start=0.1)
    losses: list[float] = []
    model.train()
    for _ in progress(range(steps), label="training"):
        starts = torch.randint(len(ids) - length - 1, (batch,), generator=rng)
        rows = torch.stack([ids[start : start + length + 1] for start in starts.tolist()])  # [batch, length + 1]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    return losses


def repeated(text: Sequence[int]) -> float:
    """Of the pairs of neighbouring tokens, the share that was there before."""
    pairs = list(zip(text, text[1:], strict=False))
    return 1 - len(set(pairs)) / len(pairs)
