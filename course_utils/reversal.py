"""The small training run of q1_5: learn to write a sequence of 12 tokens backwards.

The source is 12 random symbols out of VOCAB; the target is the same symbols in reverse, after a BOS token.
A model is `AttentionSeq2Seq(VOCAB, VOCAB + 1, D_MODEL)`, called as `model(src, tgt_in) -> (logits, weights)`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LENGTH = 12
VOCAB = 10  # symbols 0 .. VOCAB - 1; the target vocabulary has one more
BOS = VOCAB
D_MODEL = 32
STEPS = 300
BATCH = 64
RATE = 1e-2
CLIP = 1.0

Model = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # (src, tgt_in) -> (logits, weights)


def reversal_batch(
    n: int, generator: torch.Generator, length: int = LENGTH, vocab: int = VOCAB
) -> tuple[Tensor, Tensor, Tensor]:
    """Random (src, tgt_in, tgt_out), each [n, length]; tgt_out is src reversed, tgt_in opens with BOS."""
    src = torch.randint(vocab, (n, length), generator=generator)
    tgt_out = src.flip(1)
    tgt_in = torch.cat([torch.full((n, 1), vocab), tgt_out[:, :-1]], dim=1)
    return src, tgt_in, tgt_out


def train_reversal(
    model: nn.Module, steps: int = STEPS, seed: int = 0, batch: int = BATCH, rate: float = RATE
) -> list[float]:
    """Train the model with Adam on fresh random batches and return the loss of every step.

    The batches and any dropout depend on `seed` alone; the model's starting weights are the caller's.
    """
    generator = torch.Generator().manual_seed(seed)
    device = next(model.parameters()).device
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for _ in range(steps):
            src, tgt_in, tgt_out = (x.to(device) for x in reversal_batch(batch, generator))
            logits, _ = model(src, tgt_in)  # [B, T, V]
            loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            losses.append(loss.item())
    return losses


@torch.no_grad()
def greedy_accuracy(model: Model, n: int = 256, seed: int = 1) -> float:
    """The share of right tokens when the model writes n reversed sequences alone, greedily token by token."""
    local = model if isinstance(model, nn.Module) else None
    device = next(local.parameters()).device if local else torch.device("cpu")
    src, written, expected = (
        x.to(device) for x in reversal_batch(n, torch.Generator().manual_seed(seed))
    )
    written = written[:, :1]  # BOS
    training = local is not None and local.training
    if local:
        local.eval()
    for _ in range(expected.shape[1]):
        logits, _ = model(src, written)  # [n, t, V]
        written = torch.cat([written, logits[:, -1:].argmax(-1)], dim=1)
    if local:
        local.train(training)
    return (written[:, 1:] == expected).double().mean().item()
