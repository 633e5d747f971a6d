"""Checkpoints as safetensors files: numbers and text, nothing that could run.

A file holds the model's tensors under their own names, each tied tensor once; the optimizer's under `optimizer/`;
the state of the random numbers under `random/`; and as text the step, a note, and which names are tied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

OPTIMIZER, RANDOM = "optimizer/", "random/"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class CheckpointForm:
    """What a model that is handed in must have: the shape of every weight that graders read, and no more bytes."""

    shapes: Mapping[str, tuple[int, ...]]
    largest: int


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    step: int = 0,
    note: str | None = None,
) -> None:
    """Write the model, and what is needed to go on training from here. The file is whole or not there."""
    path = Path(path)
    state = _plain(model).state_dict()
    ties = _ties(state)
    tensors = {name: tensor for name, tensor in state.items() if name not in ties}
    text = {"step": str(step), "note": note or "", "ties": json.dumps(ties)}
    if optimizer is not None:
        more, text["optimizer"] = _pack(optimizer)
        tensors |= more | _random_state()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        save_file({name: _apart(tensor) for name, tensor in tensors.items()}, part, metadata=text)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_checkpoint(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> int:
    """Fill the model, and the optimizer and the random numbers if an optimizer is given; return the step.

    The model and the optimizer stay as they are when the file does not fit them.
    """
    path, model = Path(path), _plain(model)
    tensors, text = _read(path)
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith((OPTIMIZER, RANDOM))}
    weights = _fit(path, model.state_dict(), own, _parsed(path, text, "ties", {}))
    step = _parsed(path, text, "step", 0)
    if optimizer is not None:
        if "optimizer" not in text:
            raise CheckpointError(f"{path} has no optimizer state to go on from: load it without an optimizer")
        _unpack(path, optimizer, tensors, _parsed(path, text, "optimizer", {}))
        _restore_random_state(tensors)
    model.load_state_dict(weights)
    return int(step)


def read_note(path: str | Path) -> str:
    """The note that was saved with the checkpoint."""
    return _read(Path(path))[1].get("note", "")


def read_step(path: str | Path) -> int:
    """The step that was saved with the checkpoint."""
    return int(_parsed(Path(path), _read(Path(path))[1], "step", 0))


def _plain(model: nn.Module) -> nn.Module:
    """The model inside torch.compile's wrapper, which would put its own prefix before every name."""
    inner = getattr(model, "_orig_mod", model)
    return inner if isinstance(inner, nn.Module) else model


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}: train first, or give another path")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except SafetensorError as error:
        with path.open("rb") as stream:
            pickled = stream.read(2) in (b"PK", b"\x80\x02")  # a zip, or a bare pickle
        if pickled:
            raise CheckpointError(
                f"{path} looks like a file of torch.save, which may run code when it is read: use save_checkpoint"
            ) from None
        raise CheckpointError(f"{path} is cut, damaged or no safetensors file ({error}): save it again") from None


def _parsed(path: Path, text: Mapping[str, str], name: str, default: Any) -> Any:
    """A value from the file's text, of the same type as the default."""
    try:
        value = json.loads(text[name]) if name in text else default
    except ValueError:
        value = None
    if type(value) is not type(default):
        raise CheckpointError(f"{path} is no checkpoint of ours: its {name!r} cannot be read")
    return value


def _ties(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Names whose tensor is the very tensor of an earlier name, with that name."""
    first: dict[Any, str] = {}
    ties = {}
    for name, tensor in state.items():
        if tensor.numel():
            key = (tensor.device, tensor.dtype, tensor.data_ptr(), tensor.shape, tensor.stride())
            if (earlier := first.setdefault(key, name)) != name:
                ties[name] = earlier
    return ties


def _apart(tensor: Tensor) -> Tensor:
    """The tensor alone in its memory, as safetensors wants it."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _fit(
    path: Path, state: Mapping[str, Tensor], found: Mapping[str, Tensor], file_ties: Mapping[str, str]
) -> dict[str, Tensor]:
    """What the file has for each name of the model; tied names share, whichever of them the file has."""
    weights = dict(found)
    for name, first in file_ties.items():
        if name in state and first in found:
            weights[name] = found[first]
    for name, first in _ties(state).items():
        if name not in weights and first in weights:
            weights[name] = weights[first]
        if first not in weights and name in weights:
            weights[first] = weights[name]
        if name in weights and not _same(weights[name], weights[first]):
            raise CheckpointError(f"{path} has two different tensors for {first} and {name}, which this model shares")
    wanted, there = ({name: tuple(tensor.shape) for name, tensor in some.items()} for some in (state, weights))
    if faults := [*misfits(there, wanted), *(f"the model has no {name}" for name in weights if name not in state)]:
        raise CheckpointError(f"{path} does not fit this model: {first_of(faults)}")
    return weights


def misfits(there: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]) -> list[str]:
    """What a file lacks of the wanted weights, or has in another shape."""
    return [f"it has no {name}" for name in wanted if name not in there] + [
        f"{name} is {list(there[name])} there and {list(shape)} in the model"
        for name, shape in wanted.items()
        if there.get(name, shape) != shape
    ]


def first_of(faults: list[str]) -> str:
    """Three of them, and how many more there are."""
    return "; ".join(faults[:3]) + (f" and {len(faults) - 3} more" if len(faults) > 3 else "")


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.dtype == b.dtype and torch.equal(a, b))


def _pack(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], str]:
    """The optimizer's tensors by name, and the rest of its state as text."""
    state = optimizer.state_dict()
    tensors, numbers = {}, []
    for i, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{OPTIMIZER}{i}/{key}"] = value
            else:
                numbers.append((i, key, value))
    groups = [
        {k: v.item() if isinstance(v, Tensor) else v for k, v in group.items()} for group in state["param_groups"]
    ]
    return tensors, json.dumps({"kind": type(optimizer).__name__, "groups": groups, "numbers": numbers})


def _unpack(path: Path, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], saved: dict[str, Any]) -> None:
    if saved.get("kind") != type(optimizer).__name__:
        raise CheckpointError(f"{path} was saved with {saved.get('kind')}, not {type(optimizer).__name__}")
    state: dict[int, dict[str, Any]] = {}
    try:
        for name, tensor in tensors.items():
            if name.startswith(OPTIMIZER):
                i, key = name.removeprefix(OPTIMIZER).split("/", 1)
                state.setdefault(int(i), {})[key] = tensor
        for i, key, value in saved["numbers"]:
            state.setdefault(i, {})[key] = value
        optimizer.load_state_dict({"state": state, "param_groups": saved["groups"]})
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} was saved with an optimizer of other parameters: {error}") from None


def _random_state() -> dict[str, Tensor]:
    state = {f"{RANDOM}cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state |= {f"{RANDOM}cuda:{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    return state


def _restore_random_state(tensors: Mapping[str, Tensor]) -> None:
    if f"{RANDOM}cpu" in tensors:
        torch.set_rng_state(tensors[f"{RANDOM}cpu"])
    for i in range(torch.cuda.device_count()):
        if f"{RANDOM}cuda:{i}" in tensors:
            torch.cuda.set_rng_state(tensors[f"{RANDOM}cuda:{i}"], i)
