"""What a call costs on this machine: seconds, and the most memory that its tensors held at one time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Cost(NamedTuple):
    """Seconds of a call, and bytes."""

    seconds: float
    peak: int


def cost_of(f: Callable[..., Any], /, *args: Any, rounds: int = 5) -> Cost:
    """The median time of some calls f(*args), after one to warm up that is watched for its memory."""
    watch = _Watch()
    with watch:
        f(*args)
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - begin)
    return Cost(statistics.median(times), watch.peak)


class _Watch(TorchDispatchMode):
    """Adds up the memory of all tensors that were made since it began and are still there."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {_memory(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        self._live = {key: held for key, held in self._live.items() if not held[0].expired()}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and _memory(leaf) not in given:
                storage = leaf.untyped_storage()
                self._live[_memory(leaf)] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, sum(size for _, size in self._live.values()))
        return result


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
