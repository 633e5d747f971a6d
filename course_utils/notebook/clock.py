"""What calls take on this machine: time, in turns, so that others slow all of them alike, and memory at its fullest."""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """The median seconds of each call, in rounds where each has its turn, after one that is not counted.

    On a CPU it is processor time on one thread, so that other programs and more cores change little; else the clock's.
    """
    on_gpu, threads = torch.cuda.is_available(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times = [{name: _seconds(call, on_gpu) for name, call in calls.items()} for _ in range(1 + rounds)][1:]
    finally:
        torch.set_num_threads(threads)
    return {name: statistics.median(turn[name] for turn in times) for name in calls}


def peak_bytes(call: Callable[[], Any]) -> int:
    """How many bytes of tensors more than before are in memory at the call's fullest moment."""
    if torch.cuda.is_available():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        if (on_gpu := torch.cuda.max_memory_allocated() - before) > 0:
            return on_gpu
    tensors = _Tensors()
    with tensors:
        call()
    return tensors.peak


class _Tensors(TorchDispatchMode):
    """Counts the bytes of tensors that were made and not given back yet; what a kernel needs inside is not seen."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._note((args, kwargs), 0)  # whatever is unknown now was there before
        result = func(*args, **(kwargs or {}))
        self._note(result, 1)
        return result

    def _note(self, values: Any, counts: int) -> None:
        for value in tree_leaves(values):
            if isinstance(value, Tensor) and (memory := value.untyped_storage())._cdata not in self._known:
                self._known.add(memory._cdata)
                weakref.finalize(memory, self._give_back, memory._cdata, counts * memory.nbytes())
                self.held += counts * memory.nbytes()
        self.peak = max(self.peak, self.held)

    def _give_back(self, memory: int, size: int) -> None:
        self._known.discard(memory)
        self.held -= size


def _seconds(call: Callable[[], Any], on_gpu: bool) -> float:
    if on_gpu:
        torch.cuda.synchronize()
    clock = time.perf_counter if on_gpu else time.process_time
    start = clock()
    call()
    if on_gpu:
        torch.cuda.synchronize()
    return clock() - start
