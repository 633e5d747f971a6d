"""The header of a safetensors file: which tensors it has and how long it must be. Their numbers are not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 1 << 24  # bytes of a header; published models have less than a hundredth


@dataclass(frozen=True)
class SafetensorsHeader:
    """The table of contents at the beginning of a file."""

    tensors: Mapping[str, tuple[int, ...]]  # name -> shape
    metadata: Mapping[str, str]
    size: int  # bytes that the whole file must have


def read_header(path: Path) -> SafetensorsHeader | None:
    """The header of a file, whatever is in it; None where it is no safetensors file, or cut within its header."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= LARGEST:
            return None
        try:
            contents = json.loads(stream.read(length))
        except (ValueError, RecursionError):
            return None
    if not isinstance(contents, dict):
        return None
    metadata = contents.pop("__metadata__", {})
    tensors, ends = {}, [0]
    for name, told in contents.items():
        shape, offsets = _counts(told, "shape"), _counts(told, "data_offsets")
        if shape is None or offsets is None or len(offsets) != 2:
            return None
        tensors[name] = shape
        ends.append(offsets[1])
    texts = metadata.items() if isinstance(metadata, dict) else ()
    return SafetensorsHeader(
        tensors, {key: text for key, text in texts if isinstance(text, str)}, 8 + length + max(ends)
    )


def _counts(told: Any, key: str) -> tuple[int, ...] | None:
    """The list of counts that stands there; None where something else does."""
    value = told.get(key) if isinstance(told, dict) else None
    whole = isinstance(value, list) and all(type(count) is int and count >= 0 for count in value)
    return tuple(value) if whole and value is not None else None
