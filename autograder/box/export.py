"""Turn what a student's code gives back into data; what is no data stays in the box behind a handle."""

from __future__ import annotations

import decimal
import fractions
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autograder.box.held import Held
from autograder.box.protocol import Handle, Kept, ProtocolError, check_dtype

MAX_DEPTH = 32
MAX_ITEMS = 200_000
_SEQUENCES: tuple[type, ...] = (list, deque, range, type({}.keys()), type({}.values()), type({}.items()))


def export(value: Any, keep: Callable[[Any], Handle]) -> tuple[Any, list[Tensor]]:
    """The value as data, and its tensors (graph and all) in order; `keep` makes a handle of an object."""
    exporter = _Exporter(keep)
    return exporter.lower(value, 0), exporter.tensors


def kind_of(value: Any) -> str:
    """Which kind of handle an object gets; asks the object itself nothing, so that no code of the student runs."""
    if issubclass(type(value), nn.Module):
        return "module"
    if issubclass(type(value), type):
        return "class"
    return "callable" if callable(value) else "object"


class _Exporter:
    def __init__(self, keep: Callable[[Any], Handle]) -> None:
        self.keep = keep
        self.tensors: list[Tensor] = []
        self.items = 0
        self.settled: list[Held] = []  # the vault forgets what nobody holds

    def lower(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is Tensor:
            return self._tensor(value)
        if value is None or kind in (bool, int, float, str, complex) or kind is torch.dtype:
            return value
        if depth > MAX_DEPTH:
            raise ProtocolError(f"the result is nested deeper than {MAX_DEPTH} levels")
        if kind is Held:
            if value.teller.closed:
                return self._tensor(value.teller.read(value))
            value = value.teller.settled(value)
            self.settled.append(value)
            return Kept(value.number, value.dtype, tuple(value.shape), tuple(value.stride()))
        if isinstance(value, Tensor):
            with torch._C.DisableTorchFunctionSubclass():
                return self._tensor(torch.Tensor.as_subclass(value, Tensor))
        if isinstance(value, tuple):
            return tuple(self._each(value, depth))
        if isinstance(value, _SEQUENCES):
            return self._each(value, depth)
        if isinstance(value, Mapping):
            self._count(len(value))
            return {self._key(key): self.lower(item, depth + 1) for key, item in value.items()}
        if isinstance(value, set | frozenset):
            self._count(len(value))
            return {self._key(item) for item in value}
        if isinstance(value, np.ndarray):
            return self._array(value, depth)
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return check_dtype(np.asarray(value))[()]
        if type(value).__module__.partition(".")[0] == "pandas":
            raise ProtocolError(f"a pandas {type(value).__name__} cannot pass: give back its `.to_numpy()`")
        return self._scalar(value, depth)

    def _each(self, values: Any, depth: int) -> list[Any]:
        self._count(len(values))
        return [self.lower(item, depth + 1) for item in values]

    def _count(self, more: int) -> None:
        self.items += more
        if self.items > MAX_ITEMS:
            raise ProtocolError(f"the result holds more than {MAX_ITEMS} items")

    def _tensor(self, tensor: Tensor) -> Tensor:
        self.tensors.append(tensor)
        return tensor

    def _array(self, array: Any, depth: int) -> Any:
        """An array of numbers; one of objects or strings as lists."""
        array = np.asarray(array)
        if array.dtype.kind in "OUST":
            return self.lower(array.tolist(), depth + 1)
        return check_dtype(array)

    def _key(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return tuple(self._key(item) for item in key)
        if isinstance(key, Tensor):
            key = key.item()
        return self._scalar(key, MAX_DEPTH) if not isinstance(key, bool | int | float | str | None) else _base(key)

    def _scalar(self, value: Any, depth: int) -> Any:
        if isinstance(value, bool | int | float | str | complex):
            return _base(value)
        if isinstance(value, np.generic):
            item = value.item()
            return item if isinstance(item, bool | int | float | complex | str) else self.keep(value)
        if isinstance(value, fractions.Fraction | decimal.Decimal):
            return float(value)
        sympy = sys.modules.get("sympy")
        if sympy is not None:
            if isinstance(value, sympy.MatrixBase):
                return self.lower(value.tolist(), depth + 1)
            if isinstance(value, sympy.logic.boolalg.BooleanAtom):
                return bool(value)
            if isinstance(value, sympy.Expr) and value.is_number:
                return int(value) if value.is_Integer else _number(complex(value))
        return self.keep(value)


def _base(value: Any) -> Any:
    """A number or string of exactly a built-in type."""
    kinds: tuple[Any, ...] = (bool, int, float, complex, str)
    for kind in kinds:
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    return value


def _number(value: complex) -> float | complex:
    return value.real if value.imag == 0 else value
