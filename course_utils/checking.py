"""Helpers that a check uses to compare an answer, with messages that a student can act on."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

# relative and absolute tolerance of a comparison, by the coarser of the two dtypes
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (1e-4, 1e-6),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (2e-2, 1e-3),
}

PREPOSITION = re.compile(r" (?:of|for|with|without|at|along|in|on|when|where|after|from|to|by) ")


class Wrong(AssertionError):
    """An answer that is not right; `mistake` is the label of a known mistake that a check has recognised."""

    def __init__(self, message: str, mistake: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.mistake = mistake


class NotAnswered(Exception):
    """A question that is still a stub; `question` is what stands before the colon in "q1_7: ..."."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        head, colon, _ = message.partition(":")
        self.question = head.strip() if colon else ""


def check(condition: Any, message: str, mistake: str | None = None) -> None:
    """Raise `Wrong` with the message unless the condition holds."""
    if not bool(condition):
        raise Wrong(message, mistake)


def number(got: Any, what: str) -> float:
    """The answer as a float: a Python or numpy number or a 0-dim tensor, and not NaN."""
    value = _plain(got)
    if isinstance(value, Tensor):
        raise Wrong(
            f"{_verb(what, 'has', 'have')} shape {_shape(value)}, expected a number: a Python number or a 0-dim tensor"
        )
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Wrong(f"{_describe(value, what)}, expected a number: a Python number or a 0-dim tensor")
    if math.isnan(value):
        raise Wrong(f"{what} is NaN")
    return float(value)


def tensor(got: Any, what: str, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """The answer as a tensor, after its shape and dtype have been checked where they are given."""
    if not isinstance(got, (Tensor, np.ndarray)):
        raise Wrong(f"{_describe(got, what)}, expected a tensor")
    value = _as_tensor(got)
    if shape is not None and tuple(value.shape) != tuple(shape):
        raise Wrong(f"{_verb(what, 'has', 'have')} shape {_shape(value)}, expected {list(shape)}")
    if dtype is not None and value.dtype != dtype:
        raise Wrong(_dtype_message(value, dtype, what))
    return value


def same(
    got: Any,
    expected: Any,
    what: str,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: bool = True,
) -> None:
    """Raise `Wrong` unless the answer is as expected: structure, shape, dtype, finiteness, then values.

    Numbers and tensors agree within `atol + rtol * |expected|`; integers, bools, strings and sets exactly.
    `dtype=False` compares values only. NaN never passes; an infinity equals the one of the same sign.
    """
    if isinstance(expected, Mapping):
        _same_mapping(got, expected, what, rtol, atol, dtype)
    elif isinstance(expected, (list, tuple)):
        _same_sequence(got, expected, what, rtol, atol, dtype)
    elif isinstance(expected, (Tensor, np.ndarray)) or _is_number(expected):
        _same_numbers(got, expected, what, rtol, atol, dtype)
    else:
        _same_exactly(_plain(got), _plain(expected), what)


def _same_mapping(got: Any, expected: Mapping[Any, Any], what: str, *how: Any) -> None:
    if not isinstance(got, Mapping):
        raise Wrong(f"{_describe(got, what)}, expected a dict with the keys {_keys(expected)}")
    if set(got) != set(expected):
        raise Wrong(f"{_verb(what, 'has', 'have')} the keys {_keys(got)}, expected {_keys(expected)}")
    for key, value in expected.items():
        same(got[key], value, f"{what}[{key!r}]", *how)


def _same_sequence(got: Any, expected: Sequence[Any], what: str, *how: Any) -> None:
    if not isinstance(got, (list, tuple)):
        raise Wrong(f"{_describe(got, what)}, expected a {type(expected).__name__} of {len(expected)}")
    if len(got) != len(expected):
        raise Wrong(f"{_verb(what, 'has', 'have')} length {len(got)}, expected {len(expected)}")
    for i, value in enumerate(expected):
        same(got[i], value, f"{what}[{i}]", *how)


def _same_exactly(got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, Set) and isinstance(got, Set):
        equal = set(got) == set(expected)
    else:
        equal = type(got) is type(expected) and got == expected
    if not equal:
        raise Wrong(f"{_describe(got, what)}, expected {_brief(expected)}")


def _same_numbers(got: Any, expected: Any, what: str, rtol: float | None, atol: float | None, dtype: bool) -> None:
    want = _as_tensor(expected)
    if not isinstance(got, (Tensor, np.ndarray)):
        if want.ndim > 0:
            raise Wrong(f"{_describe(got, what)}, expected a tensor of shape {_shape(want)}")
        number(got, what)
    have = _as_tensor(got)
    if have.shape != want.shape:
        raise Wrong(f"{_verb(what, 'has', 'have')} shape {_shape(have)}, expected {_shape(want)}")
    both = isinstance(got, (Tensor, np.ndarray)) and isinstance(expected, Tensor)
    if dtype and both and have.dtype != want.dtype:
        raise Wrong(_dtype_message(have, want.dtype, what))
    if have.is_complex():
        raise Wrong(f"{_verb(what, 'is', 'are')} complex, expected real numbers")
    # the student's own dtype loosens it to float32's at most
    default = max(_tolerance(want), min(_tolerance(have), TOLERANCES[torch.float32]))
    _compare(have, want, what, default[0] if rtol is None else rtol, default[1] if atol is None else atol)


def _compare(have: Tensor, want: Tensor, what: str, rtol: float, atol: float) -> None:
    a, b = (x.detach().cpu().to(torch.float64) for x in (have, want))
    if a.isnan().any():
        where = _first(a.isnan())
        raise Wrong(f"{_verb(what, 'has', 'have')} NaN at index {where}" if where else f"{what} is NaN")
    gap = (a - b).abs()
    close = torch.where(a.isinf() | b.isinf(), a == b, gap <= atol + rtol * b.abs())
    if close.all():
        return
    where = _first(~close)
    x, y = _digits(have[tuple(where)].item(), want[tuple(where)].item())
    if not where:
        raise Wrong(f"{what} is {x}, expected {y}")
    wrong, worst = int((~close).sum()), gap[~close].nan_to_num(posinf=math.inf).max().item()
    raise Wrong(
        f"{what}: at index {where} you have {x}, expected {y} ({wrong} of {close.numel()} entries "
        f"{'differs' if wrong == 1 else 'differ'}, largest difference {worst:.4g})"
    )


def _tolerance(*values: Tensor) -> tuple[float, float]:
    """The loosest tolerance of the dtypes compared; integers and bools are exact."""
    known = [TOLERANCES.get(value.dtype) for value in values if value.is_floating_point()]
    return max((tolerance or TOLERANCES[torch.float32] for tolerance in known), default=(0.0, 0.0))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _plain(value: Any) -> Any:
    """Numpy and 0-dim values as Python ones, numpy arrays as tensors."""
    if isinstance(value, np.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.ndim == 0):
        return value.item()
    return value


def _as_tensor(value: Any) -> Tensor:
    """A tensor or array as a tensor, a number in int64 or float64 (torch would make it float32)."""
    if isinstance(value, (Tensor, np.ndarray)):
        return torch.as_tensor(value)
    exact = isinstance(value, numbers.Integral) and abs(int(value)) < 2**63
    return torch.tensor(int(value)) if exact else torch.tensor(float(value), dtype=torch.float64)


def _first(flags: Tensor) -> list[int]:
    return flags.nonzero()[0].tolist()


def _shape(value: Tensor) -> list[int]:
    return list(value.shape)


def _keys(value: Mapping[Any, Any]) -> str:
    return ", ".join(repr(key) for key in value) or "(none)"


def _digits(a: float, b: float) -> tuple[str, str]:
    """Both numbers with four significant digits, or as many as it takes to tell them apart; whole ones in full."""
    if isinstance(a, bool) and isinstance(b, bool):
        return str(a), str(b)
    if all(abs(x) < 2**53 and float(x).is_integer() for x in (a, b)):
        return str(int(a)), str(int(b))
    for precision in range(4, 18):
        x, y = f"{a:.{precision}g}", f"{b:.{precision}g}"
        if x != y:
            break
    return x, y


def _dtype_message(got: Tensor, expected: torch.dtype, what: str) -> str:
    have, want = (str(d).removeprefix("torch.") for d in (got.dtype, expected))
    reason = ": results keep the input's dtype" if expected.is_floating_point else ""
    return f"{_verb(what, 'is', 'are')} {have}, expected {want}{reason}"


def _describe(value: Any, what: str) -> str:
    value = _plain(value)
    if value is None:
        return f"{_verb(what, 'is', 'are')} None (is a `return` missing?)"
    if isinstance(value, Tensor):
        return f"{_verb(what, 'is', 'are')} a tensor of shape {_shape(value)}"
    if isinstance(value, (list, tuple, Mapping)):
        return f"{_verb(what, 'is', 'are')} a {type(value).__name__} of {len(value)}"
    return f"{_verb(what, 'is', 'are')} {_brief(value)}"


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _verb(what: str, singular: str, plural: str) -> str:
    """`what` with its verb: "the weights have", "the output of head 2 has"."""
    noun = PREPOSITION.split(what)[0]
    many = noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and "_" not in noun
    return f"{what} {plural if many else singular}"
