"""`course gpu-check`: hold this machine's GPU against its processor, with the student's answers, and write a report."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from course_utils.notebook.device import pick_device
from course_utils.terminal.device_trials import TRIALS, TrialRow
from course_utils.terminal.find_work import Work
from course_utils.terminal.refusals import Refusal
from course_utils.terminal.with_answers import missing_answers, run_with_answers


@dataclass(frozen=True)
class GpuReport:
    """The machine, what was compared, and what could not be since answers are missing; nothing about its owner."""

    machine: dict[str, Any]
    rows: list[TrialRow]
    missing: list[str]

    @property
    def is_well(self) -> bool:
        """Whether something was compared and nothing differs."""
        return bool(self.rows) and all(row.status == "same" for row in self.rows)

    @property
    def verdict(self) -> str:
        """The report in a sentence."""
        if not self.rows:
            return "Nothing was compared."
        wrong = sum(row.status != "same" for row in self.rows)
        return f"{wrong} of {len(self.rows)} comparisons went wrong." if wrong else f"All {len(self.rows)} agree."

    def as_json(self) -> dict[str, Any]:
        """The report as it is sent in."""
        return {"machine": self.machine, "rows": [vars(row) for row in self.rows], "missing": self.missing}

    def __str__(self) -> str:
        lines = [", ".join(f"{name} {value}" for name, value in self.machine.items())]
        lines.append(f"{'homework':<17}{'what':<44}{'result':<9}{'apart':>9}{'cpu ms':>9}{'here ms':>9}{'MB':>8}")
        for row in self.rows:
            numbers = (_number(row.difference, ".1e"), _number(row.cpu_ms, ".1f"), _number(row.device_ms, ".1f"))
            cells = "".join(f"{number:>9}" for number in numbers) + f"{_number(row.peak_mb, '.0f'):>8}"
            lines.append(f"{row.homework:<17}{f'{row.trial}: {row.what}':<44}{row.status:<9}{cells}")
            lines += [f"  {row.told}"] if row.told else []
        return "\n".join([*lines, *self.missing])


def gpu_check(works: Sequence[Work], device: str | None, compiled: bool) -> GpuReport:
    """Run the trials of these notebooks on the device, or on the GPU that is here; raises `Refusal` without one."""
    try:
        place = pick_device(device)
    except ValueError as error:
        raise Refusal(str(error)) from None
    if place.type == "cpu" and device is None:
        raise Refusal("This machine has no GPU that torch can use: there is nothing to compare with its processor.")
    rows: list[TrialRow] = []
    missing: list[str] = []
    for work in works:
        trials = TRIALS.get(work.homework, ())
        gaps = {trial.title: missing_answers(work, trial.needs) for trial in trials}
        missing += [f"{work.homework}, {title}: not answered yet: {', '.join(q)}." for title, q in gaps.items() if q]
        if ready := [title for title, questions in gaps.items() if not questions]:
            rows += _run(work, ready, str(place), compiled)
    return GpuReport(machine(place), rows, missing)


def machine(place: torch.device) -> dict[str, Any]:
    """What the figures depend on."""
    told: dict[str, Any] = {"device": str(place), "torch": torch.__version__, "python": platform.python_version()}
    told |= {"system": f"{platform.system()} {platform.machine()}", "threads": torch.get_num_threads()}
    if place.type == "cuda":
        card = torch.cuda.get_device_properties(place)
        told |= {"card": card.name, "memory_gb": round(card.total_memory / 2**30, 1), "cuda": torch.version.cuda}
        told |= {"capability": f"{card.major}.{card.minor}", "bfloat16": torch.cuda.is_bf16_supported()}
    return told


def _run(work: Work, titles: list[str], device: str, compiled: bool) -> list[TrialRow]:
    """The rows of one notebook; where its Python stops, that is a row."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        options = {"homework": work.homework, "titles": titles, "device": device, "compiled": compiled, "out": str(out)}
        code = run_with_answers(work, "course_utils.terminal.device_trials:run_trials", options)
        if not out.is_file():
            told = f"Python stopped with exit code {code}"
            return [TrialRow(work.homework, title, "all", "error", told=told) for title in titles]
        return [TrialRow(**row) for row in json.loads(out.read_text(encoding="utf-8"))]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
