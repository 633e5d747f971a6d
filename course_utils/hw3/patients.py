"""The patients of q3_10: a small encoder that learns who leads a race, and a ward of those that do not.

The task. A sequence is `CLS`, then spectators with four runners among them, then padding; the class is the runner who
comes first. All four are always there, so only their order tells.

    model = patient(3, seed=0)                   # sick, patients are numbered 1 to 11; patient(0, seed=0) is healthy
    losses = train_patient(model)                # STEPS steps of Adam on fresh batches
    accuracy(model)                              # the share of right answers on new sequences

After that run a healthy model is right in .96 to 1.0 of all cases (10 seeds), and the sick ones in .66 at most, most of
them no better than guessing, which gives .25 (3 to 13 seeds each). What is wrong with whom is sealed below: you would
spoil nothing but your own practice.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
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
ENOUGH = 0.15  # a mean loss of ten steps below which the race is learned, and a check need not train on

FORWARD = ("keep", "norm1", "attn", "add", "keep", "norm2", "fc1", "relu", "fc2", "add")  # of a healthy block

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
    """Multi-head self-attention with its settings in the open: `n_heads`, `scale`, `sees`, and the four projections.

    `sees` is "all" or "past": whether a token looks at all tokens, or at itself and those before it.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.scale = 1 / math.sqrt(d_model // n_heads)
        self.sees = "all"
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, blocked: Tensor) -> Tensor:
        """x [B, N, D], blocked keys [B, N] -> [B, N, D]; where all keys are blocked the weights are zero."""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (p(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for p in projections)  # [B, H, N, Dh]
        blocked = blocked[:, None, None]  # [B, 1, 1, N]
        if self.sees == "past":
            blocked = blocked | torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT * self.scale).masked_fill(blocked, -1e9)
        weights = scores.softmax(-1).masked_fill(blocked, 0.0)  # [B, H, N, N]
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class PatientBlock(nn.Module):
    """A block: `norm1, attn, norm2, fc1, fc2, dropout`, and `steps`, its forward pass as a list of words.

    "keep" notes the stream as it is, "add" puts what has been computed since on top of that note, "relu" and "detach"
    are torch's, and any other word is the part of that name.
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = PatientAttention(d_model, n_heads)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(0.0)
        self.steps: tuple[str, ...] = FORWARD

    def forward(self, x: Tensor, blocked: Tensor) -> Tensor:
        """x [B, N, D], blocked keys [B, N] -> [B, N, D]."""
        kept = x
        for step in self.steps:
            if step == "keep":
                kept = x
            elif step == "add":
                x = kept + self.dropout(x)
            elif step == "relu":
                x = F.relu(x)
            elif step == "detach":
                x = x.detach()
            else:
                x = self.attn(x, blocked) if step == "attn" else self.get_submodule(step)(x)
        return x


class Patient(nn.Module):
    """A small encoder classifier, `model(ids, key_padding_mask) -> logits [B, 4]`, that reads out from the first token.

    What may be wrong stands in the open: `embed`, `positions` (a fixed table, not learned), `blocks`, `norm`, `fc`,
    `head` and `padding_is` (the value in `key_padding_mask` that means padding); in the blocks `steps`, in their
    attention `scale` and `sees`.
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


_SEALED = (
    'c-oCp!ES>v4E>iJBN|Z{l<v|GL8wX-Q?jN6C9Zmy`tNfXLKT8(mspmcpWm}nf3tuRfqm9B8(c7GTpw7%yn9keo92}e1Q1Ps4I}De'
    'ow@~a5)!c|WB`Z_gAB+f_{`WUaWOKMTVpLtc6ln+IJx$2a1V?;G*uj{KL*E{2m`U!>;^y$tatvtr#MNHTGRVh%c24m5gzPgOtKlL'
    '0j26l`#-!YX@Mn`DD!=J_$UrVn(xzN1-rEPZMPtO51P7J2T}{p7AxUV4;N1`*AC~!tgmIw@xtn+yEQxGnY5<-Y>2FtHo)>^(@Z{E'
    '7W_PT_qC$7%!(#?L$~U*jiPU`SsS;sUTt2@4+j#{D*'
)


@cache
def _faults() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(zlib.decompress(base64.b85decode(_SEALED)))
    return found


WARD = range(1, 12)  # the numbers of the sick


def healthy(seed: int) -> Patient:
    """A new model without a fault; equal seeds give equal weights."""
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed reads the whole stack first
        return Patient()


@torch.no_grad()
def planted(model: Patient, number: int) -> Patient:
    """A copy of a healthy model with the fault of that number."""
    if number not in WARD:
        raise ValueError(f"no patient {number!r}: they are numbered {WARD[0]} to {WARD[-1]}, and 0 is healthy")
    model, fault = copy.deepcopy(model), _faults()[number - 1]
    for pattern, change, value in fault.get("state", []):
        for name, tensor in model.state_dict().items():
            if fnmatchcase(name, pattern):
                new = tensor[value].clone().expand_as(tensor) if change == "rows" else torch.full_like(tensor, value)
                tensor.copy_(new)
    for pattern, setting, value in fault.get("settings", []):
        for name, module in model.named_modules():
            if fnmatchcase(name, pattern):
                setattr(module, setting, tuple(value) if isinstance(value, list) else value)
    if "learned" in fault:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(any(fnmatchcase(name, pattern) for pattern in fault["learned"]))
    return model


def patient(number: int, seed: int) -> Patient:
    """A new model of the ward, or a healthy one (0). No two share their weights: nobody has a twin."""
    model = healthy(100 * seed + number)
    return planted(model, number) if number else model


def chart(model: Patient) -> dict[str, Any]:
    """All that makes a model the patient that it is, as data: `state`, the names that are `learned`, `settings`."""
    settings: dict[str, dict[str, Any]] = {"": {"padding_is": model.padding_is}}
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            settings[name] = {"p": module.p}
        elif isinstance(module, PatientAttention):
            settings[name] = {"scale": module.scale, "sees": module.sees}
        elif isinstance(module, PatientBlock):
            settings[name] = {"steps": list(module.steps)}
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
            setattr(model.get_submodule(name), setting, tuple(value) if isinstance(value, list) else value)
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
    fix: Callable[[nn.Module], nn.Module], number: int, seed: int, steps: int = STEPS, enough: float = 0.0
) -> nn.Module:
    """The patient after `fix` and the stated training run, ready to be asked: `model(ids, key_padding_mask)`."""
    model = mended(fix, number, seed)
    train_patient(model, steps, seed, enough)
    return model


def mended(fix: Callable[[nn.Module], nn.Module], number: int, seed: int) -> nn.Module:
    """What `fix` returns for the patient, not trained yet."""
    return _returned(fix, patient(number, seed))


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
