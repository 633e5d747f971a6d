"""Tools for training runs that a student can watch, stop, continue and repeat."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.notebook.bars import Bar, progress
from course_utils.notebook.checkpoints import CheckpointError, load_checkpoint, read_note, save_checkpoint

__all__ = [
    "CheckpointError",
    "Curves",
    "EarlyStop",
    "Loader",
    "Bar",
    "autocast_for",
    "fast",
    "load_checkpoint",
    "loader",
    "progress",
    "read_note",
    "save_checkpoint",
    "to_device",
]


def fast() -> bool:
    """Is COURSE_FAST=1 set? Then a notebook trains for seconds, to see that everything runs."""
    return os.environ.get("COURSE_FAST", "0") not in ("", "0")


def autocast_for(device: torch.device | str) -> AbstractContextManager[Any]:
    """Where to run the forward pass: bfloat16 on CUDA, as it is elsewhere."""
    kind = torch.device(device).type
    return torch.autocast(kind, dtype=torch.bfloat16) if kind == "cuda" else nullcontext()


def to_device(batch: Sequence[Tensor], device: torch.device | str) -> tuple[Tensor, ...]:
    """The tensors of a batch on the device; towards CUDA through pinned memory, so that the copy need not wait."""
    if torch.device(device).type == "cuda":
        return tuple(x.pin_memory().to(device, non_blocking=True) if x.device.type == "cpu" else x for x in batch)
    return tuple(x.to(device) for x in batch)


class Loader:
    """Batches of tensors that share their first dimension, shuffled anew in every epoch.

    Which rows a batch has depends on the seed, the epoch and its place alone. Iterating gives one epoch, and the
    next one the next time; `from_step(step)` gives batches without end, as a run that has made `step` steps would
    see them, which is how a run goes on from a checkpoint.
    """

    def __init__(
        self, tensors: Sequence[Tensor], batch_size: int, seed: int, shuffle: bool, device: torch.device | str
    ) -> None:
        sizes = {len(tensor) for tensor in tensors}
        if len(sizes) != 1 or not batch_size > 0 or 0 in sizes:
            raise ValueError(
                f"a loader needs tensors of one length and a batch size, not {sorted(sizes)}, {batch_size}"
            )
        self.tensors, self.batch_size, self.seed = tuple(tensors), batch_size, seed
        self.shuffle, self.device, self.epoch = shuffle, device, 0

    def __len__(self) -> int:
        return math.ceil(len(self.tensors[0]) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        self.epoch += 1
        return self._batches(self.epoch - 1)

    def from_step(self, step: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Batches without end, beginning with number `step`, counted from 0."""
        epoch, skip = divmod(step, len(self))
        while True:
            yield from self._batches(epoch, skip)
            epoch, skip = epoch + 1, 0

    def _batches(self, epoch: int, skip: int = 0) -> Iterator[tuple[Tensor, ...]]:
        n = len(self.tensors[0])
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + epoch) % 2**63)
        order = torch.randperm(n, generator=generator) if self.shuffle else torch.arange(n)
        for rows in order.split(self.batch_size)[skip:]:
            yield to_device([tensor[rows] for tensor in self.tensors], self.device)


def loader(
    *tensors: Tensor, batch_size: int = 64, seed: int = 0, shuffle: bool = True, device: torch.device | str = "cpu"
) -> Loader:
    """Batches of these tensors as tuples, on the device: `for images, labels in loader(x, y, batch_size=64): ...`."""
    return Loader(tensors, batch_size, seed, shuffle, device)


class EarlyStop:
    """Says when to stop: `if stop(loss): break` once `patience` values in a row were no better than the best.

    Lower is better, unless `higher` is set, as for an accuracy. A value that is not a number is never better.
    """

    def __init__(self, patience: int, higher: bool = False) -> None:
        self.patience, self.higher = patience, higher
        self.best: float | None = None
        self.improved = False  # was the last value the best so far? Then save a checkpoint
        self.waited = 0

    def __call__(self, value: float) -> bool:
        """Note the value; is it time to stop?"""
        value = float(value)
        self.improved = not math.isnan(value) and (
            self.best is None or (value > self.best if self.higher else value < self.best)
        )
        if self.improved:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class Curves:
    """What was measured along a run: `curves.add(step, loss=loss)`, then `curves.plot()`."""

    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = {}
        self.values: dict[str, list[float]] = {}

    def add(self, step: int, **values: Any) -> None:
        """Note one or more values of this step, by name."""
        for name, value in values.items():
            self.steps.setdefault(name, []).append(step)
            self.values.setdefault(name, []).append(float(value))

    def plot(
        self,
        *names: str,
        title: str = "",
        ylabel: str = "",
        alt: str | None = None,
        logy: bool = False,
        smooth: int = 1,
    ) -> Any:
        """Draw these curves, or all; `smooth` averages over that many neighbouring values."""
        from course_utils import plots

        names = names or tuple(self.values)
        if not names:
            raise ValueError("there is nothing to plot yet: add values first")
        steps = np.unique(np.concatenate([self.steps[name] for name in names]))
        lines = {name: self._line(name, steps, smooth) for name in names}
        alt = alt or f"Line chart over the steps of training. {' '.join(self._told(name) for name in names)}"
        return plots.curves(
            steps, lines, xlabel="step", ylabel=ylabel, title=title, alt=alt, logy=logy, marks=len(steps) <= 12
        )

    def _line(self, name: str, steps: np.ndarray, smooth: int) -> np.ndarray:
        """The curve at all steps, straight between the measured ones and absent outside."""
        order = np.argsort(self.steps[name], kind="stable")
        values = np.array(self.values[name])[order]
        if smooth > 1:
            values = np.array([values[max(0, i - smooth + 1) : i + 1].mean() for i in range(len(values))])
        return np.interp(steps, np.array(self.steps[name])[order], values, left=np.nan, right=np.nan)

    def _told(self, name: str) -> str:
        values, steps = self.values[name], self.steps[name]
        return f"{name} goes from {values[0]:.3g} at step {steps[0]} to {values[-1]:.3g} at step {steps[-1]}."
