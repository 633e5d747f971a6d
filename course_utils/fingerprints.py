"""Short prints of outputs, by which a known mistake is recognised without shipping its code.

A print keeps the structure of an output and, of its numbers, four fixed random projections and the norm.
Two outputs with the same print are equal for our purposes; an output cannot be read back from its print.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from course_utils.checking import NotAnswered
from course_utils.stubs import is_stub

PROJECTIONS = 4
HUGE = 1e30  # beyond this a number counts as infinite: fills such as finfo.min print like -inf
STAND_INS = {"nan": 17.3, "inf": 29.1, "-inf": -23.7}
LARGEST = 10**6  # numbers of which a print is taken
MANY = 4_000  # items of lists and dicts, one inside another, of which prints are taken
NOISE = 1e-9  # differences below this are rounding
REFUSAL = "ValueError"  # what right answers raise, where they are to refuse
ENOUGH = 4  # prints of numbers that cannot agree by chance

Fingerprint = Any  # JSON: dicts, lists, strings, numbers, booleans, None


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: label, a hint, and its prints where they differ from the right ones."""

    label: str
    hint: str
    prints: Mapping[str, Fingerprint] = field(default_factory=dict)


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
    if isinstance(value, np.bool_) or (
        isinstance(value, torch.Tensor) and value.ndim == 0 and value.dtype == torch.bool
    ):
        value = bool(value)
    if value is None or isinstance(value, (bool, str)):
        return {"is": value}
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic, numbers.Number)):
        return _numeric(value)
    if isinstance(value, Mapping):
        return {"dict": {str(key): _print(value[key]) for key in sorted(value, key=str)}}
    if isinstance(value, (list, tuple)):
        return {"list": [_print(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(map(repr, value))}
    return {"type": "callable" if callable(value) else type(value).__name__}


def precision(error: torch.Tensor) -> str:
    """What a largest error says: "float64", "float32", or "none" where it is more than rounding; for probes."""
    largest = float(error.detach().abs().max())
    return "float64" if largest < 1e-10 else "float32" if largest < 1e-5 else "none"


def matches(a: Fingerprint, b: Fingerprint, rtol: float = 1e-4) -> bool:
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


def diagnose(
    student: Mapping[str, Fingerprint], catalogue: Sequence[Mistake], named: Collection[str] = ()
) -> Mistake | None:
    """The mistake that fits the student's prints best, or None.

    The best fit has the most prints that match, then the fewest of its own that do not, then is among those that a
    failed case has `named`, then comes first. A mistake that fits neither most of its prints nor ENOUGH of them is
    not named: at one place many mistakes look alike.
    """
    best, best_score = None, (0, 0, False)
    for mistake in catalogue:
        hits = _hits(student, mistake)
        score = (len(hits), len(hits) - len(mistake.prints), mistake.label in named)
        if hits and (best is None or score > best_score):
            best, best_score = mistake, score
    return best


def _hits(student: Mapping[str, Fingerprint], mistake: Mistake) -> list[str]:
    """The probes at which the student's prints are the mistake's; none where that is too little to go by."""
    tried = [name for name in mistake.prints if name in student]
    hits = [name for name in tried if matches(student[name], mistake.prints[name])]
    telling = [name for name in hits if "shape" in mistake.prints[name]]  # numbers, not a yes, a word or an error
    if 2 * len(hits) <= len(tried) and len(telling) < ENOUGH:
        return []
    if all("error" in mistake.prints[name] for name in hits):  # says little: many errors are of the same type
        elsewhere = [student[name].get("error") for name in student if name not in mistake.prints]
        crashes = set(elsewhere) - {None, REFUSAL}  # where this mistake does as the right answer
        only_errors = all("error" in print_ for print_ in mistake.prints.values())
        if not only_errors or len(hits) < len(tried) or crashes:
            return []
    return hits


def _numeric(value: Any) -> Fingerprint:
    dtype = torch.float64 if isinstance(value, numbers.Real) else None  # torch would make it float32
    tensor = torch.as_tensor(value, dtype=dtype).detach().cpu()
    shape = list(tensor.shape)
    if tensor.numel() > LARGEST:
        return {"type": f"tensor of shape {shape}"}
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    x = tensor.to(torch.float64).numpy().ravel().copy()
    nan = np.isnan(x)
    high, low = x > HUGE, x < -HUGE
    x[nan], x[high], x[low] = STAND_INS["nan"], STAND_INS["inf"], STAND_INS["-inf"]
    at = [_rounded(float(w @ x)) for w in _directions(len(x))]
    return {"shape": shape, "norm": _rounded(math.sqrt(float(x @ x))), "at": at}


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
