"""A toy task with three jobs at once, for looking at what heads do.

A sequence has LENGTH symbols out of VOCAB, and one of them, at a random place, is marked. At every place the model must
name three symbols: the one just before (at place 0: its own), the first of the sequence, and the marked one. One layer
of attention between an embedding and a linear read-out is enough, if it can look at three places at once.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

JOBS = ("previous", "first", "marked")
LENGTH = 12
VOCAB = 12
D_MODEL = 24
STEPS = 300
BATCH = 64
RATE = 1e-2


def three_jobs_batch(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random symbols [n, LENGTH], the marked place [n], and the places to copy from, [n, LENGTH, 3], one per job."""
    symbols = torch.randint(VOCAB, (n, LENGTH), generator=generator)
    marked = torch.randint(LENGTH, (n,), generator=generator)
    previous = (torch.arange(LENGTH) - 1).clamp(min=0).expand(n, LENGTH)
    places = torch.stack([previous, torch.zeros_like(previous), marked[:, None].expand(n, LENGTH)], dim=-1)
    return symbols, marked, places


class ThreeJobs(nn.Module):
    """Embedding, one layer of attention, and one linear read-out per job."""

    def __init__(self, attention: nn.Module, d_model: int = D_MODEL) -> None:
        super().__init__()
        self.symbol = nn.Embedding(VOCAB, d_model)
        self.place = nn.Embedding(LENGTH, d_model)
        self.mark = nn.Parameter(torch.randn(d_model))
        self.attention = attention  # called as attention(x, x, x) -> (out [B, N, D], weights [B, H, N, N])
        self.read = nn.Linear(d_model, len(JOBS) * VOCAB)

    def forward(self, symbols: Tensor, marked: Tensor) -> tuple[Tensor, Tensor]:
        """symbols [B, N], marked [B] -> logits [B, N, 3, VOCAB], weights [B, H, N, N]."""
        is_marked = F.one_hot(marked, LENGTH)[..., None]  # [B, N, 1]
        x = self.symbol(symbols) + self.place.weight + is_marked * self.mark  # [B, N, D]
        out, weights = self.attention(x, x, x)
        return self.read(out).unflatten(-1, (len(JOBS), VOCAB)), weights


def train_three_jobs(model: nn.Module, steps: int = STEPS, seed: int = 0) -> list[float]:
    """Train with Adam on fresh random batches, at a rate that falls to zero; the loss of every step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    losses = []
    for _ in range(steps):
        logits, labels, _ = _run(model, BATCH, generator)
        loss = F.cross_entropy(logits.flatten(0, 2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def job_accuracy(model: nn.Module, n: int = 256, seed: int = 1) -> dict[str, float]:
    """The share of right symbols on new sequences, by job."""
    logits, labels, _ = _run(model, n, torch.Generator().manual_seed(seed))
    right = (logits.argmax(-1) == labels).double().mean((0, 1))  # [3]
    return dict(zip(JOBS, right.tolist(), strict=True))


@torch.no_grad()
def head_jobs(model: nn.Module, n: int = 256, seed: int = 1) -> Tensor:
    """The weight that each head puts on each job's place, averaged over places and new sequences: [H, 3]."""
    generator = torch.Generator().manual_seed(seed)
    _, _, (weights, places) = _run(model, n, generator)
    index = places[:, None].expand(-1, weights.shape[1], -1, -1)  # [n, H, N, 3]
    return weights.gather(-1, index).mean((0, 2))


def _run(model: nn.Module, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Any]:
    """Logits and labels on a fresh batch on the model's device, and the weights with the places to copy from."""
    device = next(model.parameters()).device
    symbols, marked, places = (x.to(device) for x in three_jobs_batch(n, generator))
    logits, weights = model(symbols, marked)
    labels = symbols.gather(1, places.flatten(1)).unflatten(1, (LENGTH, len(JOBS)))  # [n, N, 3]
    return logits, labels, (weights, places)
