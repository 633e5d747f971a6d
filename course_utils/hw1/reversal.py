"""The small training run of q1_5: learn to write a sequence of 12 tokens backwards.

The source is 12 random symbols out of VOCAB; the target is the same symbols in reverse, after a BOS token.
A model is `AttentionSeq2Seq(VOCAB, VOCAB + 1, D_MODEL)`, called as `model(src, tgt_in) -> (logits, weights)`.

What `greedy_accuracy` gives after the run below, over five seeds (mean, lowest to highest):

    attention without input feeding, dot scores     .92  .91 to .93      GRUCell loops        .91  .89 to .95
    the same with general scores                    .95  .92 to .98      concat scores        .90  .82 to .99
    GRUCell loop with input feeding, dot scores     .92  .89 to .94      1 / sqrt(d) scaling  .69  .67 to .74
    no context                                      .52  .50 to .54      context dropped      .47  .44 to .50
    context the mean of the source                  .49  .48 to .51      weights over queries .21  .16 to .24

The decaying rate is what makes input feeding steady (.63 to .76 at a constant one, two seeds). A larger vocabulary
lowers both groups; a smaller one lets a model without context remember more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LENGTH = 12
VOCAB = 13  # symbols 0 .. VOCAB - 1; the target vocabulary has one more
BOS = VOCAB
D_MODEL = 48
STEPS = 260
BATCH = 96
RATE = 2e-2
BETAS = (0.9, 0.98)
CLIP = 1.0

Batches = tuple[Tensor, Tensor, Tensor]  # src, tgt_in, tgt_out, each [steps, batch, length]
Model = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # (src, tgt_in) -> (logits, weights)


def reversal_batch(
    n: int, generator: torch.Generator, length: int = LENGTH, vocab: int = VOCAB, code: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Random (src, tgt_in, tgt_out), each [n, length]; tgt_out is src reversed, tgt_in opens with BOS.

    With a `code`, [vocab], the symbol s is written as `code[s]`.
    """
    src = torch.randint(vocab, (n, length), generator=generator)
    tgt_out = src.flip(1) if code is None else code[src.flip(1)]
    tgt_in = torch.cat([torch.full((n, 1), vocab), tgt_out[:, :-1]], dim=1)
    return src, tgt_in, tgt_out


def train_reversal(
    model: nn.Module,
    steps: int = STEPS,
    seed: int = 0,
    batch: int = BATCH,
    rate: float = RATE,
    batches: Batches | None = None,
    enough: float = 0.0,
) -> list[float]:
    """Train the model with Adam on fresh random batches and return the loss of every step.

    The rate rises over the first tenth of the steps and then falls to zero in a straight line. The batches and
    any dropout depend on `seed` alone; the model's starting weights are the caller's. The grader gives `batches` of its
    own, (src, tgt_in, tgt_out), one for each step. The run ends early where the last ten losses have a mean below
    `enough`.
    """
    generator = torch.Generator().manual_seed(seed)
    fresh = (reversal_batch(batch, generator) for _ in range(steps))
    device = _device(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=BETAS)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _share(step + 1, steps))
    losses = []
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for given in itertools.islice(fresh if batches is None else zip(*batches, strict=True), steps):
            src, tgt_in, tgt_out = (x.to(device, torch.long) for x in given)
            logits, _ = model(src, tgt_in)  # [B, T, V]
            loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) >= 10 and sum(losses[-10:]) < 10 * enough:
                break
    return losses


def _share(step: int, steps: int) -> float:
    """The share of the full rate at a step, counted from 1: up over a tenth of the run, then down to zero."""
    done = step / steps
    return min(done / 0.1, 1.0) * max(1 - done, 0.0) / 0.9


@torch.no_grad()
def greedy_accuracy(
    model: Model, n: int = 256, seed: int = 1, code: Tensor | None = None, length: int = LENGTH
) -> float:
    """The share of right tokens when the model writes n reversed sequences alone, greedily token by token.

    The model may be any callable; a module of this process is in evaluation mode for the while.
    """
    generator = torch.Generator().manual_seed(seed)
    src, tgt_in, expected = (x.to(_device(model)) for x in reversal_batch(n, generator, length, code=code))
    written = tgt_in[:, :1]  # BOS
    with _evaluating(model):
        for _ in range(expected.shape[1]):
            logits, _ = model(src, written)  # [n, t, V]
            written = torch.cat([written, logits[:, -1:].argmax(-1)], dim=1)
    return (written[:, 1:] == expected).double().mean().item()


def _device(model: Model) -> torch.device:
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device


@contextmanager
def _evaluating(model: Model) -> Iterator[None]:
    if not isinstance(model, nn.Module):
        yield
        return
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
