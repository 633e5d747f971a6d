"""Expected values are computed once in a process: they follow from the inputs, and those from the case and the seed.

A class is graded with one seed, so what one student's answer is compared with is what the next one's is, too.
"""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from autograder.box.protocol import raw_bytes

ROOM = 32 * 2**20  # bytes of all values that are kept
_PLAIN = (type(None), bool, int, float, str)
_kept: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()  # the oldest first, with their sizes
_used = [0]  # bytes
_P = ParamSpec("_P")
_R = TypeVar("_R")


def once(oracle: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, run once for the same inputs, to the bit; whoever asks gets tensors of their own.

    For a function that follows from its arguments alone. Where one of them is no plain data, but a function or a tensor
    with a gradient, it is run each time.
    """

    @functools.wraps(oracle)
    def remembered(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        digest = hashlib.blake2b(f"{oracle.__module__}.{oracle.__qualname__}".encode())
        try:
            for part in _bytes([args, kwargs]):
                digest.update(part)
        except TypeError:
            return oracle(*args, **kwargs)
        key = digest.digest()
        if key not in _kept:
            value = oracle(*args, **kwargs)
            size = sum(leaf.nbytes if isinstance(leaf, Tensor) else 64 for leaf in tree_leaves(value))
            _kept[key] = tree_map_only(Tensor, lambda x: x.detach().clone(), value), size
            _used[0] += size
            while _used[0] > ROOM:
                _used[0] -= _kept.popitem(last=False)[1][1]
            return value
        found: _R = tree_map_only(Tensor, Tensor.clone, _kept[key][0])
        return found

    return remembered


def _bytes(value: Any) -> Iterator[bytes | memoryview]:
    """What tells a value from all others; `TypeError` where it is no plain data."""
    if isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)};".encode()
        for item in value:
            yield from _bytes(item)
    elif isinstance(value, dict):
        yield f"dict {len(value)};".encode()
        for name, item in value.items():
            yield from _bytes(name)
            yield from _bytes(item)
    elif type(value) is Tensor and not value.requires_grad and value.device.type == "cpu":
        yield f"{value.dtype} {tuple(value.shape)};".encode()
        yield raw_bytes(value.contiguous())
    elif type(value) in _PLAIN:
        yield f"{type(value).__name__} {value!r};".encode()
    else:
        raise TypeError(f"a {type(value).__name__} is no plain data")
