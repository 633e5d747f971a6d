"""Homework 4 in the box: the rates of a student's `fit`, and the brief training run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.data import BOS, EOS, PAD
from course_utils.hw4.training_runs import losses_told, two_groups
from course_utils.hw4.translation import Batch, Ids, PadBatch, TeacherForcing, TrainStep, train_briefly

SCHEDULED = ("optimizer", "pad_id", "epochs", "rate", "warmup", "start")


def watch_fit(
    fit: Callable[..., Any], model: nn.Module, batches: Sequence[Batch], pad_id: int, schedule: dict[str, Any]
) -> tuple[Any, list[list[float]]] | None:
    """fit's list of losses, and the rates of both groups of its optimizer at each step; None for other arguments.

    `schedule` has epochs, rate, warmup and start.
    """
    if not set(SCHEDULED) <= set(inspect.signature(fit).parameters):
        return None
    rates: list[list[float]] = []
    optimizer = torch.optim.SGD(two_groups(model), lr=1e-3)

    def hook(*_: Any) -> None:
        rates.append([float(group["lr"]) for group in optimizer.param_groups])

    handle = optimizer.register_step_pre_hook(hook)
    try:
        result = fit(model, [tuple(batch) for batch in batches], optimizer=optimizer, pad_id=pad_id, **schedule)
    finally:
        handle.remove()
    return losses_told(result), rates


def brief_run(
    model: nn.Module,
    pad_batch: PadBatch,
    teacher_forcing: TeacherForcing,
    train_step: TrainStep,
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    rows: Tensor,
) -> list[float]:
    """The grader's small run with the student's parts: trains the model, gives the loss of each step.

    Step i has the sentences rows[i] out of sources and targets, which are lists of token numbers.
    """
    batches = []
    for row in rows.tolist():
        src, src_padding = pad_batch([list(sources[i]) for i in row], PAD)
        inputs, labels = teacher_forcing([list(targets[i]) for i in row], BOS, EOS, PAD)
        batches.append((src, src_padding, inputs, labels))
    return train_briefly(model, train_step, batches)
