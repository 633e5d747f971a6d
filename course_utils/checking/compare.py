"""Helpers that a check uses to compare an answer, with messages that a student can act on."""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checking.pairs import first_of
from course_utils.checking.relation_forms import of_lists, of_sets, of_shape, of_shapes, of_words
from course_utils.checking.relations import of_nan, relation
from course_utils.checking.wrong import NotAnswered as NotAnswered
from course_utils.checking.wrong import Wrong as Wrong

if TYPE_CHECKING:  # a course on NumPy has no torch
    import torch
    from torch import Tensor

Array = Any  # a NumPy array, or a tensor where there is torch

# relative and absolute tolerance of a comparison, by the coarser of the two dtypes
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-9),
    "float32": (1e-4, 1e-6),
    "float16": (1e-2, 1e-3),
    "bfloat16": (2e-2, 1e-3),
}

NUMBER = "a Python number, or a tensor or array without axes"
PREPOSITION = re.compile(r" (?:of|for|with|without|at|along|in|on|when|where|after|from|to|by) ")


def check(condition: Any, message: str, mistake: str | None = None) -> None:
    """Raise `Wrong` with the message unless the condition holds."""
    if not bool(condition):
        raise Wrong(message, mistake)


def number(got: Any, what: str) -> float:
    """The answer as a float: a Python or numpy number or a 0-dim tensor or array, and not NaN."""
    value = _plain(got)
    if _is_array(value):
        raise Wrong(f"{_verb(what, 'has', 'have')} shape {_shape(value)}, expected a number: {NUMBER}")
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Wrong(f"{_describe(value, what)}, expected a number: {NUMBER}")
    if math.isnan(value):
        raise Wrong(f"{what} is NaN")
    return float(value)


def tensor(got: Any, what: str, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """The answer as a tensor, after its shape and dtype have been checked where they are given."""
    import torch

    if not _is_array(got):
        raise Wrong(f"{_describe(got, what)}, expected a tensor")
    value = torch.as_tensor(got)
    _check_array(value, what, shape, None if dtype is None else _dtype(dtype))
    return value


def array(got: Any, what: str, shape: Sequence[int] | None = None, dtype: Any = None) -> np.ndarray:
    """The answer as a NumPy array, after its shape and dtype have been checked where they are given."""
    if not _is_array(got):
        raise Wrong(f"{_describe(got, what)}, expected an array")
    value: np.ndarray = got if isinstance(got, np.ndarray) else got.detach().cpu().numpy()
    _check_array(value, what, shape, None if dtype is None else str(np.dtype(dtype)))
    return value


def _check_array(value: Array, what: str, shape: Sequence[int] | None, dtype: str | None) -> None:
    if shape is not None and tuple(value.shape) != tuple(shape):
        told = f"{_verb(what, 'has', 'have')} shape {_shape(value)}, expected {list(shape)}"
        raise Wrong(told, relation=first_of(of_shape(value.shape, shape)))
    if dtype is not None and _dtype(value.dtype) != dtype:
        raise Wrong(_dtype_message(value, dtype, what))


def same(
    got: Any,
    expected: Any,
    what: str,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: bool = True,
) -> None:
    """Raise `Wrong` unless the answer is as expected: structure, shape, dtype, finiteness, then values.

    Numbers, tensors and arrays agree within `atol + rtol * |expected|`; integers, bools, strings and sets exactly.
    `dtype=False` compares values only. NaN never passes; an infinity equals the one of the same sign.
    """
    if isinstance(expected, Mapping):
        _same_mapping(got, expected, what, rtol, atol, dtype)
    elif isinstance(expected, (list, tuple)):
        _same_sequence(got, expected, what, rtol, atol, dtype)
    elif _is_array(expected) or _is_number(expected):
        _same_numbers(got, expected, what, rtol, atol, dtype)
    else:
        _same_exactly(_plain(got), _plain(expected), what)


def same_as_yours(got: Any, own: Any, what: str, against: str, **how: Any) -> None:
    """`same` for two outputs of the answer itself, where one must not differ from the other: nothing was "expected".

    `against` says where the other came from: `same_as_yours(padded, plain, "the output", "without the padding")` tells
    "the output: at index [0] you have 3, and without the padding 2".
    """
    try:
        same(got, own, what, **how)
    except Wrong as wrong:
        raise Wrong(wrong.plain.replace(", expected ", f", and {against} ", 1), wrong.mistake) from None


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
        told = f"{_verb(what, 'has', 'have')} length {len(got)}, expected {len(expected)}"
        raise Wrong(told, relation=first_of(of_lists(got, expected)))
    for i, value in enumerate(expected):
        try:
            same(got[i], value, f"{what}[{i}]", *how)
        except Wrong as wrong:
            if wrong.relation or not (of_all := _relation_of_lists(got, expected)):
                raise
            raise Wrong(wrong.message, wrong.mistake, of_all) from None


def _relation_of_lists(got: Sequence[Any], expected: Sequence[Any]) -> str:
    """What two lists of one length have to do with each other, as numbers or item by item."""
    if len(expected) > 1 and all(_is_number(_plain(value)) for value in [*got, *expected]):
        have, want = (np.array([float(_plain(value)) for value in values]) for values in (got, expected))
        if told := relation(have, want, *TOLERANCES["float64"]):
            return told
    return first_of(of_lists(got, expected))


def _same_exactly(got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, Set) and isinstance(got, Set):
        equal = set(got) == set(expected)
    else:
        equal = type(got) is type(expected) and got == expected
    if not equal:
        of_kind: Iterator[str] = iter(())
        if isinstance(expected, Set) and isinstance(got, Set):
            of_kind = of_sets(got, expected)
        elif isinstance(expected, str) and isinstance(got, str):
            of_kind = of_words(got, expected)
        raise Wrong(f"{_describe(got, what)}, expected {_brief(expected)}", relation=first_of(of_kind))


def _same_numbers(got: Any, expected: Any, what: str, rtol: float | None, atol: float | None, dtype: bool) -> None:
    want = _as_array(expected)
    if not _is_array(got):
        if want.ndim > 0:
            raise Wrong(f"{_describe(got, what)}, expected {_a(want)} of shape {_shape(want)}")
        number(got, what)
    have = _as_array(got)
    # the student's own dtype loosens it to float32's at most
    default = max(_tolerance(want), min(_tolerance(have), TOLERANCES["float32"]))
    rtol, atol = default[0] if rtol is None else rtol, default[1] if atol is None else atol
    if tuple(have.shape) != tuple(want.shape):
        told = f"{_verb(what, 'has', 'have')} shape {_shape(have)}, expected {_shape(want)}"
        forms = of_shapes(_values(have), _values(want), lambda a, b: bool(np.allclose(a, b, rtol, atol)))
        raise Wrong(told, relation=first_of(forms))
    typed = _is_array(got) and (_is_tensor(expected) or isinstance(expected, np.ndarray) and not _is_tensor(got))
    if dtype and typed and _dtype(have.dtype) != _dtype(want.dtype):
        raise Wrong(_dtype_message(have, _dtype(want.dtype), what))
    if _dtype(have.dtype).startswith("complex"):
        raise Wrong(f"{_verb(what, 'is', 'are')} complex, expected real numbers")
    _compare(have, want, what, rtol, atol)


def _compare(have: Array, want: Array, what: str, rtol: float, atol: float) -> None:
    a, b = _values(have), _values(want)
    if np.isnan(a).any():
        where = _first(np.isnan(a))
        told = f"{_verb(what, 'has', 'have')} NaN at index {where}" if where else f"{what} is NaN"
        raise Wrong(told, relation=of_nan(a, b))
    with np.errstate(invalid="ignore"):  # an infinity minus itself
        gap = np.abs(a - b)
        close = np.where(np.isinf(a) | np.isinf(b), a == b, gap <= atol + rtol * np.abs(b))
    if close.all():
        return
    where = _first(~close)
    x, y = _digits(have[tuple(where)].item(), want[tuple(where)].item())
    related = relation(a, b, rtol, atol, bools="bool" in _dtype(have.dtype) and "bool" in _dtype(want.dtype))
    if not where:
        raise Wrong(f"{what} is {x}, expected {y}", relation=related)
    wrong, worst = int((~close).sum()), float(np.nan_to_num(gap[~close], nan=0.0, posinf=math.inf).max())
    raise Wrong(
        f"{what}: at index {where} you have {x}, expected {y} ({wrong} of {close.size} entries "
        f"{'differs' if wrong == 1 else 'differ'}, largest difference {worst:.4g})",
        relation=related,
    )


def _tolerance(value: Array) -> tuple[float, float]:
    """The tolerance of a dtype; integers and bools are exact."""
    name = _dtype(value.dtype)
    return TOLERANCES.get(name, TOLERANCES["float32"]) if "float" in name else (0.0, 0.0)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # where nobody has imported it, there is no tensor
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


def _dtype(dtype: Any) -> str:
    """A dtype's name, the same for a tensor and an array."""
    return str(dtype).removeprefix("torch.")


def _values(value: Array) -> np.ndarray:
    """The numbers in float64, without their gradients and device."""
    if _is_tensor(value):
        import torch

        value = value.detach().cpu().to(torch.float64).numpy()
    return np.asarray(value, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _plain(value: Any) -> Any:
    """Numpy and 0-dim values as Python ones."""
    if isinstance(value, np.generic) or (_is_array(value) and value.ndim == 0):
        return value.item()
    return value


def _as_array(value: Any) -> Array:
    """A tensor or array as it is, a number in int64 or float64."""
    if _is_array(value):
        return value
    exact = isinstance(value, numbers.Integral) and abs(int(value)) < 2**63
    return np.array(int(value)) if exact else np.array(float(value))


def _first(flags: np.ndarray) -> list[int]:
    return [int(index) for index in np.argwhere(flags)[0]]


def _shape(value: Array) -> list[int]:
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


def _dtype_message(got: Array, expected: str, what: str) -> str:
    reason = ": results keep the input's dtype" if "float" in expected else ""
    return f"{_verb(what, 'is', 'are')} {_dtype(got.dtype)}, expected {expected}{reason}"


def _describe(value: Any, what: str) -> str:
    value = _plain(value)
    if value is None:
        return f"{_verb(what, 'is', 'are')} None (is a `return` missing?)"
    if _is_array(value):
        return f"{_verb(what, 'is', 'are')} {_a(value)} of shape {_shape(value)}"
    if isinstance(value, (list, tuple, Mapping)):
        return f"{_verb(what, 'is', 'are')} a {type(value).__name__} of {len(value)}"
    return f"{_verb(what, 'is', 'are')} {_brief(value)}"


def _a(value: Array) -> str:
    return "a tensor" if _is_tensor(value) else "an array"


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
