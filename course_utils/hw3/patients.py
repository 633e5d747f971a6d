"""The patients of q3_10: a small encoder that learns who leads a race, and the faults that keep it from learning.

The task. A sequence is `CLS`, then spectators with four runners among them, then padding; the class is the runner who
comes first. All four are always there, so only their order tells.

    model = patient("no_positions", seed=0)      # sick; patient("healthy", seed=0) is not
    losses = train_patient(model)                # STEPS steps of Adam on fresh batches
    accuracy(model)                              # the share of right answers on new sequences

After that run a healthy model is right in .96 to 1.0 of all cases (10 seeds), `blurred` in .64 at most,
`constant_weights` in .54, `zero_gains` in .40, the others in .27 (5 to 13 seeds each; guessing gives .25).
A softmax frozen by a scale that is too *large* is no fault here: the other parts learn round it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, CLS = 0, 1
RUNNERS = 4  # tokens 2 .. 5; the classes 0 .. 3
SPECTATORS = 4  # tokens 6 .. 9
VOCAB = 2 + RUNNERS + SPECTATORS
LENGTHS = (6, 12)  # shortest and longest sequence, CLS counted
D_MODEL, N_HEADS, D_FF, N_LAYERS = 32, 4, 64, 2
STEPS, BATCH, RATE, CLIP = 150, 32, 7e-3, 1.0
BAR = 0.85  # what a mended model reaches after the stated run, and no sick one
ENOUGH = 0.1  # a mean loss of ten steps below which the race is learned, and a check need not train on

Batches = tuple[Tensor, Tensor, Tensor]  # ids [steps, n, 12], key_padding_mask [steps, n, 12], labels [steps, n]


def toy_batch(generator: torch.Generator, n: int = BATCH) -> tuple[Tensor, Tensor, Tensor]:
    """Random (ids [n, 12], key_padding_mask [n, 12], labels [n]): the label is the first runner, 0 to 3."""
    longest = LENGTHS[1]
    lengths = torch.randint(LENGTHS[0], longest + 1, (n, 1), generator=generator)
    place = torch.arange(longest)
    padding = place >= lengths  # [n, 12], True = padding
    crowd = torch.randint(2 + RUNNERS, VOCAB, (n, longest), generator=generator)
    chances = torch.rand(n, longest, generator=generator).masked_fill(padding | (place == 0), 2.0)
    lanes = chances.argsort(1)[:, :RUNNERS]  # [n, 4]: four different real places, one for each runner
    ids = crowd.scatter(1, lanes, torch.arange(2, 2 + RUNNERS).expand(n, -1))
    ids = ids.masked_fill(padding, PAD)
    ids[:, 0] = CLS
    return ids, padding, lanes.argmin(1)


class PatientAttention(nn.Module):
    """Multi-head self-attention with its scale in the open: `n_heads`, `scale`, `q_proj, k_proj, v_proj, o_proj`."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.scale = 1 / math.sqrt(d_model // n_heads)
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, blocked: Tensor) -> Tensor:
        """x [B, N, D], blocked keys [B, N] -> [B, N, D]; where all keys are blocked the weights are zero."""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (p(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for p in projections)  # [B, H, N, Dh]
        blocked = blocked[:, None, None]  # [B, 1, 1, N]
        scores = (q @ k.mT * self.scale).masked_fill(blocked, -1e9)
        weights = scores.softmax(-1).masked_fill(blocked, 0.0)  # [B, H, N, N]
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class PatientBlock(nn.Module):
    """A pre-norm block: `norm1, attn, norm2, fc1, fc2, dropout`."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = PatientAttention(d_model, n_heads)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x: Tensor, blocked: Tensor) -> Tensor:
        """x [B, N, D], blocked keys [B, N] -> [B, N, D]."""
        x = x + self.dropout(self.attn(self.norm1(x), blocked))
        return x + self.dropout(self.fc2(F.relu(self.fc1(self.norm2(x)))))


class Patient(nn.Module):
    """A small encoder classifier, `model(ids, key_padding_mask) -> logits [B, 4]`, that reads out from the first token.

    What may be wrong stands in the open: `embed`, `positions` (a fixed table, not learned), `blocks`, `norm`, `fc`,
    `head` and `padding_is` (the value in `key_padding_mask` that means padding).
    """

    positions: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, D_MODEL)
        self.register_buffer("positions", _table(LENGTHS[1], D_MODEL))  # [12, D]
        self.blocks = nn.ModuleList(PatientBlock(D_MODEL, N_HEADS, D_FF) for _ in range(N_LAYERS))
        self.norm = nn.LayerNorm(D_MODEL)
        self.fc, self.head = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, RUNNERS)
        self.padding_is = True

    def forward(self, ids: Tensor, key_padding_mask: Tensor) -> Tensor:
        """ids [B, N], key_padding_mask [B, N] (True = padding) -> logits [B, 4]."""
        x = self.embed(ids) + self.positions[: ids.shape[1]]  # [B, N, D]
        blocked = key_padding_mask == self.padding_is  # [B, N]
        for block in self.blocks:
            x = block(x, blocked)
        logits: Tensor = self.head(F.relu(self.fc(self.norm(x[:, 0]))))  # [B, 4]
        return logits


def _table(n: int, d: int) -> Tensor:
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)  # [n, d / 2]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # [n, d]


@torch.no_grad()
def _frozen(model: Patient) -> None:
    model.requires_grad_(False)
    model.head.requires_grad_(True)


@torch.no_grad()
def _dead_relu(model: Patient) -> None:
    model.fc.bias.fill_(-30.0)


def _dropout(model: Patient) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.98


def _flipped_mask(model: Patient) -> None:
    model.padding_is = False


def _no_positions(model: Patient) -> None:
    model.positions.copy_(model.positions[0].clone().expand_as(model.positions))


@torch.no_grad()
def _zero_gains(model: Patient) -> None:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.zero_()


def _blurred(model: Patient) -> None:
    for module in model.modules():
        if isinstance(module, PatientAttention):
            module.scale = (D_MODEL // N_HEADS) ** -4.5


@torch.no_grad()
def _constant_weights(model: Patient) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight.fill_(1 / 16)


_PLANT: dict[str, Callable[[Patient], None]] = {
    "frozen": _frozen,  # nothing but the head learns
    "dead_relu": _dead_relu,  # no unit of the read-out's hidden layer ever fires
    "dropout": _dropout,  # 49 of 50 entries of each branch are dropped
    "flipped_mask": _flipped_mask,  # only padding is seen
    "no_positions": _no_positions,  # every place has the same position vector
    "zero_gains": _zero_gains,  # the layer norms let nothing through
    "blurred": _blurred,  # the attention's scale is so small that all weights are equal
    "constant_weights": _constant_weights,  # all entries of a linear layer start equal, so its units stay equal
}
FAULTS = tuple(_PLANT)


def patient(fault: str, seed: int) -> Patient:
    """A new model with one of FAULTS, or "healthy"; equal seeds give equal weights up to the fault."""
    if fault != "healthy" and fault not in _PLANT:
        raise ValueError(f"no fault {fault!r}: there are {', '.join(FAULTS)}, and 'healthy'")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Patient()
    if fault != "healthy":
        _PLANT[fault](model)
    return model


def chart(model: Patient) -> dict[str, Any]:
    """All that makes a model the patient that it is, as data: `state`, the names that are `learned`, `settings`."""
    settings: dict[str, dict[str, Any]] = {"": {"padding_is": model.padding_is}}
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            settings[name] = {"p": module.p}
        elif isinstance(module, PatientAttention):
            settings[name] = {"scale": module.scale}
    learned = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    return {"state": dict(model.state_dict()), "learned": learned, "settings": settings}


def admitted(chart: dict[str, Any]) -> Patient:
    """The patient of a chart."""
    model = Patient()
    model.load_state_dict(chart["state"])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in chart["learned"])
    for name, found in chart["settings"].items():
        for setting, value in found.items():
            setattr(model.get_submodule(name), setting, value)
    return model


def train_patient(
    model: nn.Module, steps: int = STEPS, seed: int = 0, enough: float = 0.0, batches: Batches | None = None
) -> list[float]:
    """Train the model on fresh batches and return the loss of every step; batches and dropout depend on `seed` alone.

    Adam, the rate rising over the first tenth of the steps, gradient norm clipped to 1; one torch thread, so that
    a run can be repeated. It ends early where the last ten losses have a mean below `enough`. The model is left in
    evaluation mode. The grader gives `batches` of its own, (ids, key_padding_mask, labels), one for each step.
    """
    generator = torch.Generator().manual_seed(seed)
    fresh = (toy_batch(generator) for _ in range(steps))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / (0.1 * steps), 1.0))
    losses = []
    model.train()
    with _one_thread(), torch.random.fork_rng():
        torch.manual_seed(seed)
        for ids, padding, labels in itertools.islice(fresh if batches is None else zip(*batches, strict=True), steps):
            loss = F.cross_entropy(model(ids.long(), padding), labels.long())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) >= 10 and sum(losses[-10:]) < 10 * enough:
                break
    model.eval()
    return losses


def treat(
    fix: Callable[[nn.Module], nn.Module], fault: str, seed: int, steps: int = STEPS, enough: float = 0.0
) -> nn.Module:
    """The patient after `fix` and the stated training run, ready to be asked: `model(ids, key_padding_mask)`."""
    model = mended(fix, fault, seed)
    train_patient(model, steps, seed, enough)
    return model


def mended(fix: Callable[[nn.Module], nn.Module], fault: str, seed: int) -> nn.Module:
    """What `fix` returns for the patient, not trained yet."""
    return _returned(fix, patient(fault, seed))


def mended_by_chart(fix: Callable[[nn.Module], nn.Module], chart: dict[str, Any]) -> nn.Module:
    """What `fix` returns for the patient of a chart, not trained yet."""
    return _returned(fix, admitted(chart))


def _returned(fix: Callable[[nn.Module], nn.Module], patient: Patient) -> nn.Module:
    model = fix(patient)
    if not isinstance(model, nn.Module):
        raise TypeError(f"return the mended model, not {type(model).__name__}")
    return model


@torch.no_grad()
def accuracy(model: Callable[[Tensor, Tensor], Tensor], n: int = 1000, seed: int = 1) -> float:
    """The share of right answers on n new sequences, for a model in evaluation mode or any callable."""
    ids, padding, labels = toy_batch(torch.Generator().manual_seed(seed), n)
    return (model(ids, padding).argmax(-1) == labels).double().mean().item()


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
