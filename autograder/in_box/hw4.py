"""Homework 4 in the box: the brief training run."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from course_utils.data import BOS, EOS, PAD
from course_utils.hw4.translation import Ids, PadBatch, TeacherForcing, TrainStep, train_briefly


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
