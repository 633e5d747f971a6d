"""`course gpu-check`, tried on a processor: what agrees, what does not, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
import torch
from torch import Tensor, nn

from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.homework import homework_names, read_homework
from course_utils.notebook import device
from course_utils.terminal.device_trials import TRIALS, run_trials
from course_utils.terminal.main import main


def test_a_machine_without_a_gpu_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setattr(device, "_available", lambda kind: kind == "cpu")
    assert main(["gpu-check"]) == 2
    assert "has no GPU that torch can use" in capsys.readouterr().err
    assert main(["gpu-check", "--device", "cuda"]) == 2
    assert not list(tmp_path.iterdir())


def test_answers_are_compared_and_missing_ones_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, make in (("hw2_multihead", solution_notebook), ("hw3_blocks", student_notebook)):
        nbformat.write(make(read_homework(name)), tmp_path / f"{name}.ipynb")
    assert main(["gpu-check", "--device", "cpu", "--no-compile"]) == 0
    told = capsys.readouterr().out
    assert "All 2 agree." in told and "hw3_blocks, classifier: not answered yet: q3_9." in told
    report = json.loads((tmp_path / "gpu-report.json").read_text())
    assert {row["what"] for row in report["rows"]} == {"values and gradients", "bfloat16"}
    assert all(row["status"] == "same" for row in report["rows"]) and report["machine"]["device"] == "cpu"


class Noisy(nn.Linear):
    """A layer that gives another value each time, as one does that draws on its own."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__(d_model, d_model)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(query) + torch.rand(())


def test_what_differs_or_fails_is_told(tmp_path: Path) -> None:
    def rows(model: object) -> list[dict[str, str]]:
        out = tmp_path / "rows.json"
        names = {"MultiHeadAttention": model}
        run_trials(names, "hw2_multihead", ["multi-head attention"], "cpu", False, str(out))
        return json.loads(out.read_text())

    assert {row["status"] for row in rows(Noisy)} == {"differs"}
    (failed,) = rows(nn.Linear(2, 2))
    assert failed["status"] == "error" and "TypeError" in failed["told"]


def test_every_homework_is_tried_with_names_that_it_asks_for() -> None:
    assert set(TRIALS) == set(homework_names())
    for name, trials in TRIALS.items():
        asked = {one for question in read_homework(name).questions for one in question.names}
        assert all(set(trial.needs) <= asked for trial in trials)
    assert {name for name, trials in TRIALS.items() if any(t.steps for t in trials)} == {
        "hw4_translation", "hw5_vision", "hw6_pretraining",
    }  # fmt: skip
