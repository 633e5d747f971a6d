"""A training run in files beside the notebook, so that it can be stopped, continued and shown again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_utils.notebook.bars import WholeRun, whole_run
from course_utils.notebook.checkpoints import CheckpointError, load_checkpoint, read_step, save_checkpoint
from course_utils.notebook.training import Curves


class RunStopped(KeyboardInterrupt):
    """A run that somebody interrupted; a notebook shows one line of it, and runs no further cells."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in the place of a traceback."""
        return [str(self)]


class TrainingRun:
    """The curves of a run, its latest state and its best model.

    The best model is `checkpoint`, the file to hand in; the rest lies in `folder`. Of a run that is over, everything is
    read again and nothing is trained. Without the checkpoint, or with `anew`, a new run begins.
    """

    best: float | None  # the best score so far
    facts: dict[str, float]  # what else a run must remember when it goes on

    def __init__(self, folder: str | Path, checkpoint: str | Path, anew: bool = False) -> None:
        self.folder, self.checkpoint = Path(folder), Path(checkpoint)
        self.curves, self.best, self.finished, self.facts = Curves(), None, False, {}
        self.saved = 0  # steps of the latest state
        told = self._read() if self.checkpoint.is_file() and not anew else {}
        if told:
            self.curves.steps, self.curves.values = told["steps"], told["values"]
            self.best, self.finished, self.facts = told["best"], told["finished"], told.get("facts", {})
        elif self.folder.is_dir():
            for file in self.folder.glob("*.safetensors"):
                file.unlink()  # of an earlier run

    @property
    def latest(self) -> Path:
        """Where the latest state of the run is, with its optimizer."""
        return self.folder / "latest.safetensors"

    def resume(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
        """Fill both from the latest state, if there is one; the number of steps that were made."""
        self.saved = self._load(self.latest, model, optimizer) if self.latest.is_file() else 0
        return self.saved

    @contextmanager
    def going(self, start: int, total: int, label: str = "training") -> Iterator[WholeRun]:
        """One bar for all `total` steps, `start` of them made; whoever interrupts is told in one line how to go on."""
        with whole_run(total, start, label) as bar:
            try:
                yield bar
            except KeyboardInterrupt:
                again = f"go on from step {self.saved}" if self.saved else "begin again"
                raise RunStopped(f"stopped at step {bar.done}; run the cell again to {again}") from None

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Keep the state after `step` steps, to go on from."""
        save_checkpoint(self.latest, model, optimizer, step)
        self.saved = step

    def mark(self) -> None:
        """Remember the latest state as the place from which a longer run can begin."""
        if self.latest.is_file():
            (self.folder / "longer.safetensors").write_bytes(self.latest.read_bytes())

    def reopen(self) -> None:
        """Go back to the marked place, if there is one; what was measured after it is forgotten."""
        marked = self.folder / "longer.safetensors"
        if not marked.is_file():
            return
        os.replace(marked, self.latest)
        last, self.finished = read_step(self.latest), False
        for name, steps in self.curves.steps.items():
            kept = [i for i, step in enumerate(steps) if step <= last]
            self.curves.steps[name] = [steps[i] for i in kept]
            self.curves.values[name] = [self.curves.values[name][i] for i in kept]
        self.facts = {name: self.curves.values[name][-1] for name in self.facts if self.curves.values.get(name)}
        self.best = max(self.curves.values.get("score", []), default=None)

    def look(self, score: float, model: nn.Module) -> None:
        """Keep the model as the best if its score is not below any before, and write down the curves."""
        if self.best is None or score >= self.best:
            self.best = float(score)
            save_checkpoint(self.checkpoint, model, note=f"score {score:.4f}")
        self._write()

    def finish(self, model: nn.Module) -> None:
        """The run is over: the model gets the best weights."""
        self.finished = True
        if self.checkpoint.is_file():
            self._load(self.checkpoint, model)
        else:
            save_checkpoint(self.checkpoint, model)
        self._write()

    def keep(self, name: str, model: nn.Module) -> None:
        """Keep a model of this moment under a name of its own."""
        save_checkpoint(self.folder / f"{name}.safetensors", model)

    def kept(self, name: str, model: nn.Module) -> nn.Module | None:
        """Fill the model with what was kept under this name; None if nothing was."""
        file = self.folder / f"{name}.safetensors"
        if not file.is_file():
            return None
        self._load(file, model)
        return model.eval()

    def _load(self, file: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> int:
        try:
            return load_checkpoint(file, model, optimizer)
        except CheckpointError as error:
            raise CheckpointError(f"{error}. To train anew, delete {self.folder} and {self.checkpoint}.") from None

    def _read(self) -> dict[str, Any]:
        """What was written down about the run; nothing if that cannot be read."""
        try:
            told = json.loads((self.folder / "history.json").read_text(encoding="utf-8"))
            return told if {"steps", "values", "best", "finished"} <= set(told) else {}
        except (OSError, ValueError):
            return {}

    def _write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"steps": self.curves.steps, "values": self.curves.values, "best": self.best, "finished": self.finished}
        told |= {"facts": self.facts}
        (self.folder / "history.json").write_text(json.dumps(told), encoding="utf-8")
