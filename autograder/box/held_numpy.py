"""NumPy on handles: what `x.numpy()` gives in a watched call, so that answers written with NumPy can be watched too.

It knows NumPy's arithmetic, and the functions that have a twin in torch; anything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import Tensor

UFUNCS = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "true_divide": torch.true_divide,
    "divide": torch.true_divide,
    "floor_divide": torch.floor_divide,
    "power": torch.pow,
    "matmul": torch.matmul,
    "negative": torch.neg,
    "absolute": torch.abs,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "logical_not": torch.logical_not,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "invert": torch.bitwise_not,
    **{name: getattr(torch, name) for name in (
        "exp expm1 log log1p log2 log10 sqrt square sin cos tan tanh sinh cosh arctan arcsin arccos sign reciprocal "
        "isfinite isnan isinf floor ceil"
    ).split()},
}  # fmt: skip
SAME = "outer dot diag trace where clip cumsum cumprod einsum stack argmax argmin isclose triu tril roll flip vdot"
OTHER = {"concatenate": "cat", "zeros_like": "zeros_like", "ones_like": "ones_like", "full_like": "full_like"}
CONVERTING = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "copy")
REDUCING = {"sum", "prod", "mean", "max", "min", "amax", "amin", "any", "all", "std", "var"}


class HeldArray(NDArrayOperatorsMixin):
    """An array as far as NumPy's own functions can tell; its numbers are in the vault."""

    __array_priority__ = 1000

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return tuple(self.held.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of an array."""
        return _dtype(self.held.dtype)

    @property
    def T(self) -> HeldArray:
        """The axes in reverse order."""
        return HeldArray(self.held.permute(*range(self.held.dim() - 1, -1, -1)))

    ndim = property(lambda self: self.held.dim())
    size = property(lambda self: self.held.numel())

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Any:
        return (HeldArray(row) for row in self.held.unbind(0))

    def __getitem__(self, index: Any) -> HeldArray:
        return HeldArray(self.held[_tensors(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.held[_tensors(index)] = _tensors(value)

    def __float__(self) -> float:
        return float(self.held.item())

    def __int__(self) -> int:
        return int(self.held.item())

    def __bool__(self) -> bool:
        return bool(self.held.item())

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this call is watched: NumPy has no numbers to work on here. Use torch's functions.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = UFUNCS.get(ufunc.__name__)
        if function is None or method != "__call__" or set(kwargs) - {"out"} or kwargs.get("out"):
            raise TypeError(f"this call is watched: np.{ufunc.__name__} cannot be used here. Use torch's functions.")
        like = next(x.held for x in inputs if isinstance(x, HeldArray))
        return HeldArray(function(*(_operand(x, like) for x in inputs)))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        if name in REDUCING:
            return _reduced(name, *args, **kwargs)
        twin: Callable[..., Any] | None = None
        if name in SAME.split():
            twin = getattr(torch, name, None)
        elif name in OTHER:
            twin = getattr(torch, OTHER[name])
        elif name in ("reshape", "transpose", "squeeze", "expand_dims", "swapaxes"):
            return getattr(args[0], name)(*args[1:], **kwargs)
        if twin is None:
            raise TypeError(f"this call is watched: np.{name} cannot be used here. Use torch's functions.")
        kwargs = {("dim" if key == "axis" else key): value for key, value in kwargs.items()}
        return _arrays(twin(*_tensors(args), **_tensors(kwargs)))

    def astype(self, dtype: Any) -> HeldArray:
        """With another dtype."""
        return HeldArray(self.held.to(torch.from_numpy(np.empty(0, dtype)).dtype))

    def reshape(self, *shape: Any) -> HeldArray:
        """In another shape."""
        return HeldArray(self.held.reshape(*shape))

    def transpose(self, *axes: Any) -> HeldArray:
        """With its axes in another order."""
        axes = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        return HeldArray(self.held.permute(*axes)) if axes else self.T

    def swapaxes(self, one: int, other: int) -> HeldArray:
        """With two axes exchanged."""
        return HeldArray(self.held.transpose(one, other))

    def squeeze(self, axis: int | None = None) -> HeldArray:
        """Without axes of length one."""
        return HeldArray(self.held.squeeze() if axis is None else self.held.squeeze(axis))

    def expand_dims(self, axis: int) -> HeldArray:
        """With an axis more."""
        return HeldArray(self.held.unsqueeze(axis))

    def copy(self) -> HeldArray:
        """The same numbers again."""
        return HeldArray(self.held.clone())

    def dot(self, other: Any) -> HeldArray:
        """The product."""
        return HeldArray(torch.matmul(self.held, _operand(other, self.held)))

    def item(self) -> Any:
        """Reads the number out."""
        return self.held.item()

    def tolist(self) -> Any:
        """Reads the numbers out."""
        return self.held.tolist()


for _name in REDUCING:
    setattr(HeldArray, _name, lambda self, *args, _name=_name, **kwargs: _reduced(_name, self, *args, **kwargs))


@contextmanager
def converting() -> Iterator[None]:
    """Inside, NumPy's ways to make an array of something take handles too: no protocol of NumPy's hears of them."""
    theirs = {name: getattr(np, name) for name in CONVERTING}
    for name, function in theirs.items():
        setattr(np, name, partial(_converted, function))
    try:
        yield
    finally:
        for name, function in theirs.items():
            setattr(np, name, function)


def _converted(function: Callable[..., Any], value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if not _has_handles(value):
        return function(value, *args, **kwargs) if dtype is None else function(value, dtype, *args, **kwargs)
    array = HeldArray(_stacked(value)).copy()
    return array if dtype is None else array.astype(dtype)


def _has_handles(value: Any) -> bool:
    return isinstance(value, HeldArray) or isinstance(value, list | tuple) and any(map(_has_handles, value))


def _stacked(value: Any) -> Tensor:
    """Lists of handles as one tensor."""
    if isinstance(value, HeldArray):
        return value.held
    like = next(_stacked(item) for item in value if _has_handles(item))
    return torch.stack([_stacked(item) if _has_handles(item) else _operand(item, like) for item in value])


def _reduced(name: str, array: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
             ddof: int = 0, **_: Any) -> Any:  # fmt: skip
    held = _tensors(array)
    axes = tuple(range(held.dim())) if axis is None else axis
    if name in ("std", "var"):
        return HeldArray(getattr(torch, name)(held, dim=axes, correction=ddof, keepdim=keepdims))
    function = {"max": torch.amax, "min": torch.amin}.get(name) or getattr(torch, name)
    if name == "prod" and axis is None:
        return HeldArray(torch.prod(held))
    return HeldArray(function(held, dim=axes, keepdim=keepdims))


def _operand(value: Any, like: Tensor) -> Any:
    """Something that torch computes with: NumPy's scalars and lists are numbers as good as any."""
    if isinstance(value, HeldArray):
        return value.held
    if isinstance(value, np.ndarray | np.generic):
        return torch.from_numpy(np.array(value)).to(like.device)
    if isinstance(value, list | tuple):
        return torch.from_numpy(np.array(value)).to(like.device)
    return torch.as_tensor(value, dtype=like.dtype if isinstance(value, float) else None, device=like.device)


def _tensors(value: Any) -> Any:
    if isinstance(value, HeldArray):
        return value.held
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, tuple):
        return tuple(map(_tensors, value))
    if isinstance(value, list):
        return [_tensors(item) for item in value]
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    return value


def _arrays(value: Any) -> Any:
    return HeldArray(value) if isinstance(value, Tensor) else value


def _dtype(dtype: torch.dtype) -> np.dtype[Any]:
    names = {torch.bool: "bool", torch.float64: "float64", torch.float32: "float32", torch.int64: "int64"}
    return np.dtype(names.get(dtype, str(dtype).removeprefix("torch.")))
