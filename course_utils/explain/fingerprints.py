"""Short prints of outputs, by which a known mistake is recognised without shipping its code.

A print keeps the structure of an output and, of its numbers, four fixed random projections and the norm.
Two outputs with the same print are equal for our purposes. Of few numbers the print holds the numbers themselves,
and of whole ones a hash: `sealed_prints` keeps prints so that nothing can be read back from them.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import numbers
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course_utils.checking.wrong import NotAnswered
from course_utils.explain.stubs import is_stub

PROJECTIONS = 4
FEW = 2 * PROJECTIONS  # numbers that projections might give away
RTOL = 1e-4  # of the norm: numbers of right answers differ by less, those of mistakes by more
HUGE = 1e30  # beyond this a number counts as infinite: fills such as finfo.min print like -inf
STAND_INS = {"nan": 17.3, "inf": 29.1, "-inf": -23.7}
LARGEST = 10**6  # numbers of which a print is taken
MANY = 4_000  # items of lists and dicts, one inside another, of which prints are taken
NOISE = 1e-9  # differences below this are rounding

Fingerprint = Any  # JSON: dicts, lists, strings, numbers, booleans, None


def fingerprint(value: Any) -> Fingerprint:
    """The print of an output: structure, shapes and projections; a number and a 0-dim tensor print alike."""
    return _print(value) if _items(value) <= MANY else {"type": f"a long {type(value).__name__}"}


def _items(value: Any) -> int:
    """How many items stand in a value and in those, counted until there are too many."""
    count, waiting = 0, [value]
    while waiting and count <= MANY:
        inner = waiting.pop()
        if isinstance(inner, (Mapping, list, tuple, set, frozenset)):
            count += len(inner)
            waiting += list(inner.values() if isinstance(inner, Mapping) else inner)[: MANY + 1]
    return count


def _print(value: Any) -> Fingerprint:
    if isinstance(value, BaseException):
        return {"error": getattr(value, "type_name", type(value).__name__)}  # as the student's own code raised it
    if isinstance(value, np.bool_) or (_is_tensor(value) and value.ndim == 0 and str(value.dtype) == "torch.bool"):
        value = bool(value)
    if value is None or isinstance(value, (bool, str)):
        return {"is": value}
    if _is_tensor(value) or isinstance(value, (np.ndarray, np.generic, numbers.Number)):
        return _numeric(value)
    if isinstance(value, Mapping):
        return {"dict": {str(key): _print(value[key]) for key in sorted(value, key=str)}}
    if isinstance(value, (list, tuple)):
        return {"list": [_print(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(map(repr, value))}
    return {"type": "callable" if callable(value) else type(value).__name__}


def precision(error: Any) -> str:
    """What a largest error says: "float64", "float32", or "none" where it is more than rounding; for probes."""
    largest = float(np.abs(_as_array(error)).max())
    return "float64" if largest < 1e-10 else "float32" if largest < 1e-5 else "none"


def matches(a: Fingerprint, b: Fingerprint, rtol: float = RTOL) -> bool:
    """Whether two prints agree: structure exactly, numbers within `rtol` of the norm of what was printed."""
    if not (isinstance(a, dict) and isinstance(b, dict)) or a.keys() != b.keys():
        return False
    if "shape" in a:
        room = rtol * max(a["norm"], b["norm"]) + NOISE
        pairs = [(a["norm"], b["norm"]), *zip(a["at"], b["at"], strict=True)]
        return a["shape"] == b["shape"] and all(abs(x - y) <= room for x, y in pairs)
    if "dict" in a:
        return a["dict"].keys() == b["dict"].keys() and all(
            matches(a["dict"][key], b["dict"][key], rtol) for key in a["dict"]
        )
    if "list" in a:
        return len(a["list"]) == len(b["list"]) and all(
            matches(x, y, rtol) for x, y in zip(a["list"], b["list"], strict=True)
        )
    return a == b


def run_probe(probe: Callable[..., Any], resolve: Callable[[str], Any]) -> Fingerprint:
    """The print of what a probe returns, given its arguments by name; an error prints as its type.

    `NotAnswered` passes through; a name that `resolve` does not know (None), or a stub, raises it.
    """
    arguments = {name: resolve(name) for name in inspect.signature(probe).parameters}
    for name, value in arguments.items():
        if value is None:
            raise NotAnswered(f"`{name}` is not defined yet")
    try:
        return fingerprint(probe(**arguments))
    except NotAnswered:
        raise
    except Exception as error:
        if is_stub(error):
            raise NotAnswered(str(error)) from None
        return fingerprint(error)


def _numeric(value: Any) -> Fingerprint:
    shape = list(getattr(value, "shape", ()))
    if math.prod(shape) > LARGEST:
        return {"type": f"tensor of shape {shape}"}
    x = _as_array(value).ravel()
    x = x.view(np.float64) if np.iscomplexobj(x) else x
    nan = np.isnan(x)
    high, low = x > HUGE, x < -HUGE
    x[nan], x[high], x[low] = STAND_INS["nan"], STAND_INS["inf"], STAND_INS["-inf"]
    norm = _rounded(math.sqrt(float(x @ x)))
    found: Fingerprint = {"shape": shape, "norm": norm, "at": [_rounded(float(w @ x)) for w in _directions(len(x))]}
    if len(x) <= FEW:
        return found | {"items": x.tolist()}
    whole, room = np.rint(x), RTOL * norm + NOISE
    if room < 0.25 and np.abs(x - whole).max() <= room:
        return found | {"whole": hashlib.blake2b(whole.astype("<i8").tobytes(), digest_size=8).hexdigest()}
    return found


def _is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch, which need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _as_array(value: Any) -> np.ndarray:
    """A copy of a number, array or tensor in double precision."""
    if _is_tensor(value):
        value = value.detach().cpu().resolve_conj()
        return (value.cdouble() if value.is_complex() else value.double()).numpy().copy()
    array = np.asarray(float(value) if isinstance(value, numbers.Real) else value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"an array of type {array.dtype} holds no numbers")
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _directions(n: int) -> np.ndarray:
    """Fixed weights in [-1, 1), one row per projection, from a hash of the position (splitmix64): [4, n]."""
    with np.errstate(over="ignore"):
        z = np.arange(1, PROJECTIONS * n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) / 2**52 - 1).reshape(n, PROJECTIONS).T


def _rounded(x: float) -> float:
    return float(f"{x:.8g}")
