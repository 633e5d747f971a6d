"""The trained model beside a notebook: which file it is, and what is wrong with it, in the same words everywhere."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.terminal.find_work import Work
from course_utils.terminal.notebook_file import MAX_BYTES

if TYPE_CHECKING:
    from course_utils.notebook.checkpoints import CheckpointForm

JUDGED = {  # homework: the question that its model is for, and the module that knows the model's form
    "hw4_translation": ("q4_10", "course_utils.hw4.tasks"),
    "hw5_vision": ("q5_6", "course_utils.hw5.vision"),
}


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
        return TrainedModel(None, f"There is no {wanted} beside the notebook. {needed_for(work.homework)}")
    if len(found) > 1 and not exact:
        names = ", ".join(path.name for path in found)
        which = f"Which of {names} is the trained model? Name it {wanted}; none is taken."
        return TrainedModel(None, f"{which} {needed_for(work.homework)}")
    path = (exact or found)[0]
    if trouble := trouble_with(path, work.homework):
        return TrainedModel(None, f"{path.name} is not taken: {trouble} {needed_for(work.homework)}")
    return TrainedModel(path, "" if path.name == wanted else f"{path.name} is taken as {wanted}.")


def needed_for(homework: str) -> str:
    """What the trained model is for, and what counts without one."""
    if homework not in JUDGED:
        return "Questions on the trained model need it."
    return f"{JUDGED[homework][0]} is judged by it; without it, by a short training run with your parts."


def trouble_with(path: Path, homework: str) -> str:
    """Why a file is no trained model of this homework that graders read, or an empty string.

    Its numbers are not loaded.
    """
    form = _form(homework)
    size, largest = path.stat().st_size, form.largest if form else MAX_BYTES
    if size > largest:
        return f"it has {size / 2**20:.0f} MB, and at most {largest // 2**20} are read."
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
    return _misfit(header, form) if form else ""


def _form(homework: str) -> CheckpointForm | None:
    """What the homework's model must have, where that is known and torch is there to say it."""
    if homework not in JUDGED:
        return None
    try:
        form: CheckpointForm = importlib.import_module(JUDGED[homework][1]).checkpoint_form()
    except ImportError:
        return None
    return form


def _misfit(header: dict[str, Any], form: CheckpointForm) -> str:
    """Why a whole file is not the model that is asked for, in the words of `load_checkpoint`."""
    from course_utils.notebook.checkpoints import first_of, misfits  # brings torch, which `_form` has brought

    there = {name: _shape(told) for name, told in header.items() if name != "__metadata__"}
    there |= {name: there[first] for name, first in _ties(header).items() if name not in there and first in there}
    if not (faults := misfits(there, form.shapes)):
        return ""
    return f"it does not fit the model that is asked for: {first_of(faults)}. Train with the sizes of the notebook."


def _ties(header: dict[str, Any]) -> dict[str, str]:
    """Names under which the file's tensors stand in the model once more, as `save_checkpoint` writes them."""
    try:
        ties = json.loads(header["__metadata__"]["ties"])
    except (KeyError, TypeError, ValueError):
        return {}
    return {name: first for name, first in ties.items() if isinstance(first, str)} if isinstance(ties, dict) else {}


def _shape(told: dict[str, Any]) -> tuple[int, ...]:
    """A tensor's shape; of a header that has none, the empty one."""
    shape = told.get("shape")
    return tuple(shape) if isinstance(shape, list) else ()


def _end(told: Any) -> int:
    """Where a tensor's numbers end; beyond any file where the header says something else."""
    offsets = told.get("data_offsets") if isinstance(told, dict) else None
    whole = isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(at, int) for at in offsets)
    return offsets[1] if whole and offsets else MAX_BYTES
