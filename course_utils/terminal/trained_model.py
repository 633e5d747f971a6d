"""The trained model beside a notebook: which file it is, and what is wrong with it, in the same words everywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.terminal.find_work import Work
from course_utils.terminal.notebook_file import MAX_BYTES


@dataclass(frozen=True)
class TrainedModel:
    """The file to hand in, none where there is nothing of use, and what the student should know about it."""

    path: Path | None
    remark: str = ""


def trained_model(work: Work) -> TrainedModel | None:
    """What lies beside the notebook; None where the homework asks for no trained model."""
    wanted = work.original.checkpoint
    if not wanted:
        return None
    found = sorted(work.folder.glob("*.safetensors"))
    exact = [path for path in found if path.name == wanted]
    if not found:
        return TrainedModel(None, f"There is no {wanted} beside the notebook: questions on the trained model need it.")
    if len(found) > 1 and not exact:
        names = ", ".join(path.name for path in found)
        return TrainedModel(None, f"Which of {names} is the trained model? Name it {wanted}; none is taken.")
    path = (exact or found)[0]
    if trouble := trouble_with(path):
        return TrainedModel(None, f"{path.name} is not taken: {trouble}")
    return TrainedModel(path, "" if path.name == wanted else f"{path.name} is taken as {wanted}.")


def trouble_with(path: Path) -> str:
    """Why a file is no safetensors file that graders read, or an empty string; its numbers are not loaded."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        return f"it has {size / 2**20:.0f} MB, and at most {MAX_BYTES // 2**20} are read."
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            header = json.loads(file.read(length)) if 8 + length <= size else None
        except ValueError:
            header = None
    if not isinstance(header, dict):
        return "it is cut or no safetensors file. Save it with save_checkpoint."
    tensors = {name: told for name, told in header.items() if name != "__metadata__"}
    if not tensors:
        return "there is no tensor in it. Save the trained model with save_checkpoint."
    end = max((_end(told) for told in tensors.values()), default=0)
    if 8 + length + end != size:
        return f"it is cut: {size} bytes of {8 + length + end}. Run the cell that saves it again."
    return ""


def _end(told: Any) -> int:
    """Where a tensor's numbers end; beyond any file where the header says something else."""
    offsets = told.get("data_offsets") if isinstance(told, dict) else None
    whole = isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(at, int) for at in offsets)
    return offsets[1] if whole and offsets else MAX_BYTES
