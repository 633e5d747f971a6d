"""What `course gpu-check` tries: models and training steps of each homework, on a processor and on another device.

Every trial begins with the same weights and inputs in both places. Values and gradients are compared in float32,
then the loss in bfloat16, then the loss of the compiled model, and for homeworks 4 to 6 the losses of training steps.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.notebook.device import pick_device
from course_utils.notebook.training import autocast_for, loader, to_device

Names = Mapping[str, Any]
Batch = tuple[Tensor, ...]
Loss = Callable[[nn.Module, Batch], Tensor]
Attempt = Callable[[nn.Module, torch.device, bool], list[Tensor]]  # with: is this the place that is tried?
Steps = Callable[[Names, nn.Module, Batch, Loss], list[float]]

FLOAT32, BFLOAT16 = 1e-3, 5e-2  # the largest difference, relative to the largest value
PAD = 0


@dataclass(frozen=True)
class Trial:
    """A model with a batch and a loss, made from a notebook's names; `steps` trains it and tells the losses."""

    title: str
    needs: tuple[str, ...]
    make: Callable[[Names], tuple[nn.Module, Batch, Loss]]
    steps: Steps | None = None


@dataclass(frozen=True)
class TrialRow:
    """What came of one comparison: same, differs, error, or not tried."""

    homework: str
    trial: str
    what: str
    status: str
    difference: float | None = None
    cpu_ms: float | None = None
    device_ms: float | None = None
    peak_mb: float | None = None
    told: str = ""


class Call(nn.Module):
    """A function of tensors as a model: the tensors are its parameters."""

    def __init__(self, function: Callable[..., Any], *tensors: Tensor) -> None:
        super().__init__()
        self.function, self.inputs = function, nn.ParameterList(tensors)

    def forward(self, mask: Tensor) -> Any:
        """The function's value for its own tensors and the mask."""
        return self.function(*self.inputs, mask)


def _first(outputs: Any) -> Tensor:
    return outputs[0] if isinstance(outputs, tuple) else outputs


def _squares(model: nn.Module, batch: Batch) -> Tensor:
    """The mean square of the first output: a loss for anything."""
    return _first(model(*batch)).square().mean()


def _padding(rows: int, width: int) -> Tensor:
    """Row i has i places of padding at its end."""
    return torch.arange(width) >= width - torch.arange(rows)[:, None]


def _ids(rows: int, width: int, words: int) -> Tensor:
    return torch.randint(4, words, (rows, width))


def _hw1_attention(names: Names) -> tuple[nn.Module, Batch, Loss]:
    return Call(names["attention"], *torch.randn(3, 4, 9, 16)), (_padding(4, 9),), _squares


def _hw1_translator(names: Names) -> tuple[nn.Module, Batch, Loss]:
    return names["AttentionSeq2Seq"](20, 20, 32), (_ids(4, 9, 20), _ids(4, 7, 20), _padding(4, 9)), _squares


def _hw2_heads(names: Names) -> tuple[nn.Module, Batch, Loss]:
    x = torch.randn(4, 9, 32)
    return names["MultiHeadAttention"](32, 4), (x, x, x, _padding(4, 9)), _squares


def _hw3_encoder(names: Names) -> tuple[nn.Module, Batch, Loss]:
    return names["EncoderLayer"](32, 4, 64), (torch.randn(4, 9, 32), _padding(4, 9)), _squares


def _hw3_decoder(names: Names) -> tuple[nn.Module, Batch, Loss]:
    batch = (torch.randn(4, 7, 32), torch.randn(4, 9, 32), _padding(4, 9))
    return names["DecoderLayer"](32, 4, 64), batch, _squares


def _hw3_classifier(names: Names) -> tuple[nn.Module, Batch, Loss]:
    return names["EncoderClassifier"](20, 32, 4, 64, 2, 3, 16), (_ids(4, 9, 20), _padding(4, 9)), _squares


def _hw4_transformer(names: Names) -> tuple[nn.Module, Batch, Loss]:
    batch = (_ids(16, 9, 50), _padding(16, 9), _ids(16, 7, 60), _ids(16, 7, 60))

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        src, padding, inputs, labels = batch
        return names["smoothed_loss"](model(src, inputs, padding), labels, PAD)

    return names["Transformer"](50, 60, 64, 4, 128, 2), batch, loss


def _hw4_steps(names: Names, model: nn.Module, batch: Batch, loss: Loss) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return [float(names["train_step"](model, batch, optimizer, PAD)) for _ in range(3)]


def _hw5_vit(names: Names) -> tuple[nn.Module, Batch, Loss]:
    model = names["ViT"](28, 7, 1, 64, 4, 128, 2, 10)
    return model, (torch.rand(16, 1, 28, 28), torch.randint(0, 10, (16,))), _classes


def _hw5_cnn(names: Names) -> tuple[nn.Module, Batch, Loss]:
    return names["SmallCNN"](), (torch.rand(16, 1, 28, 28), torch.randint(0, 10, (16,))), _classes


def _classes(model: nn.Module, batch: Batch) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def _hw5_steps(names: Names, model: nn.Module, batch: Batch, loss: Loss) -> list[float]:
    repeated = [x.cpu().repeat(3, *[1] * (x.dim() - 1)) for x in batch]  # three batches of the same images
    batches = loader(*repeated, batch_size=len(batch[0]), shuffle=False)
    return [float(value) for value in names["train_classifier"](model, batches, 1)]


def _hw6_bert(names: Names) -> tuple[nn.Module, Batch, Loss]:
    ids, asked = _ids(16, 12, 40), torch.rand(16, 12) < 0.3
    labels = torch.where(asked, ids, -100)
    batch = (ids.masked_fill(asked, 3), _ids(16, 12, 6) - 4, _padding(16, 12), labels, torch.arange(16) % 2 == 0)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return names["pretraining_loss"](*model(*batch[:3]), *batch[3:])[0]

    return names["BERT"](40, 64, 4, 128, 2, 16), batch, loss


def _hw6_gpt(names: Names) -> tuple[nn.Module, Batch, Loss]:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch[0][:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch[0][:, 1:].flatten())

    return names["GPT"](40, 64, 4, 128, 2, 16), (_ids(16, 12, 40),), loss


def _plain_steps(names: Names, model: nn.Module, batch: Batch, loss: Loss) -> list[float]:
    """Three steps of plain descent, as the notebook of homework 6 has no training function to ask."""
    device = next(model.parameters()).device
    optimizer, losses, moved = torch.optim.SGD(model.parameters(), lr=0.05), [], to_device(batch, device)
    for _ in range(3):
        with autocast_for(device):
            value = loss(model, moved)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


TRIALS: dict[str, tuple[Trial, ...]] = {
    "hw1_attention": (
        Trial("attention", ("attention",), _hw1_attention),
        Trial("GRU translator", ("AttentionSeq2Seq",), _hw1_translator),
    ),
    "hw2_multihead": (Trial("multi-head attention", ("MultiHeadAttention",), _hw2_heads),),
    "hw3_blocks": (
        Trial("encoder layer", ("EncoderLayer",), _hw3_encoder),
        Trial("decoder layer", ("DecoderLayer",), _hw3_decoder),
        Trial("classifier", ("EncoderClassifier",), _hw3_classifier),
    ),
    "hw4_translation": (
        Trial("Transformer", ("Transformer", "smoothed_loss", "train_step"), _hw4_transformer, _hw4_steps),
    ),
    "hw5_vision": (
        Trial("ViT", ("ViT", "MAPHead", "train_classifier"), _hw5_vit, _hw5_steps),
        Trial("CNN", ("SmallCNN",), _hw5_cnn),
    ),
    "hw6_pretraining": (
        Trial("BERT", ("BERT", "pretraining_loss"), _hw6_bert, _plain_steps),
        Trial("GPT", ("GPT",), _hw6_gpt, _plain_steps),
    ),
}


def run_trials(names: Names, homework: str, titles: Sequence[str], device: str, compiled: bool, out: str) -> int:
    """Run these trials of a homework and write their rows; called beside the notebook, with its names."""
    place = pick_device(device)
    rows = [
        asdict(row)
        for trial in TRIALS[homework]
        if trial.title in titles
        for row in _rows(homework, trial, names, place, compiled)
    ]
    Path(out).write_text(json.dumps(rows), encoding="utf-8")
    return 0


def _rows(homework: str, trial: Trial, names: Names, place: torch.device, compiled: bool) -> Iterator[TrialRow]:
    """The comparisons of a trial; an error in one of them is its result."""
    torch.manual_seed(0)
    try:
        model, batch, loss = trial.make(names)
    except Exception as error:
        yield TrialRow(homework, trial.title, "model", "error", told=_told(error))
        return
    tries: list[tuple[str, float, Attempt]] = [
        ("values and gradients", FLOAT32, lambda model, at, _: _gradients(model, to_device(batch, at), loss)),
        ("bfloat16", BFLOAT16, lambda model, at, tried: [_in_bfloat16(model, to_device(batch, at), loss, tried)]),
    ]
    if compiled:
        tries.append(
            ("compiled", FLOAT32, lambda model, at, tried: [_compiled(model, to_device(batch, at), loss, tried)])
        )
    if trial.steps is not None:
        steps, allowed = trial.steps, BFLOAT16 if place.type == "cuda" else FLOAT32
        tries.append(("training steps", allowed, lambda model, at, _: [torch.tensor(steps(names, model, batch, loss))]))
    for what, allowed, attempt in tries:
        try:
            yield _compared(homework, trial.title, what, allowed, attempt, model, place)
        except Exception as error:
            yield TrialRow(homework, trial.title, what, "error", told=_told(error))


def _compared(
    homework: str, title: str, what: str, allowed: float, attempt: Attempt, model: nn.Module, place: torch.device
) -> TrialRow:
    """The attempt in both places, each with a copy of the model, timed the second time."""
    values, times = [], []
    for at, tried in ((torch.device("cpu"), False), (place, True)):
        attempt(copy.deepcopy(model).to(at), at, tried)  # the first time is not the usual one
        fresh = copy.deepcopy(model).to(at)
        _begin_memory(at)
        begun = time.perf_counter()
        found = attempt(fresh, at, tried)
        _wait(at)
        times.append(1000 * (time.perf_counter() - begun))
        values.append([value.detach().float().cpu() for value in found])
    difference = _difference(*values)
    status = "same" if difference <= allowed else "differs"
    return TrialRow(homework, title, what, status, difference, times[0], times[1], _peak_memory(place))


def _gradients(model: nn.Module, batch: Batch, loss: Loss) -> list[Tensor]:
    """The loss and the gradient of every parameter, in float32."""
    value = loss(model, batch)
    value.backward()
    return [value, *(p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters())]


def _in_bfloat16(model: nn.Module, batch: Batch, loss: Loss, tried: bool) -> Tensor:
    """The loss, in bfloat16 where it is tried and in float32 on the processor that it is held against."""
    with torch.autocast(batch[0].device.type, dtype=torch.bfloat16, enabled=tried), torch.no_grad():
        return loss(model, batch)


def _compiled(model: nn.Module, batch: Batch, loss: Loss, tried: bool) -> Tensor:
    """The loss of the compiled model where it is tried, and of the model as it is elsewhere."""
    used: Any = torch.compile(model) if tried else model
    with torch.no_grad():
        return loss(used, batch)


def _difference(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The largest difference of two tensors, relative to their values; infinite where one is no number."""
    largest = max(float(x.abs().max()) for x in one)
    worst = 0.0
    for x, y in zip(one, other, strict=True):
        apart = float((x - y).abs().max())
        scale = max(float(x.abs().max()), 1e-3 * largest)  # a gradient that is all but zero counts for little
        worst = max(worst, apart / scale if scale and math.isfinite(apart) else math.inf if apart else 0.0)
    return worst


def _begin_memory(at: torch.device) -> None:
    if at.type == "cuda":
        torch.cuda.reset_peak_memory_stats(at)


def _peak_memory(at: torch.device) -> float | None:
    """Megabytes of the device's memory that were in use at most; None where torch does not count."""
    if at.type == "cuda":
        return torch.cuda.max_memory_allocated(at) / 2**20
    return torch.mps.driver_allocated_memory() / 2**20 if at.type == "mps" else None


def _wait(at: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if at.type == "cuda":
        torch.cuda.synchronize(at)
    elif at.type == "mps":
        torch.mps.synchronize()


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
