"""What calls take on this machine: time, in turns, so that others slow all of them alike, and memory at its fullest."""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils.notebook.bars import progress


class Cost(NamedTuple):
    """Seconds of a call, and bytes."""

    seconds: float
    peak: int


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """The median seconds of each call, in rounds where each has its turn, after one that is not counted.

    On a CPU it is processor time on one thread, so that other programs and more cores change little; else the clock's.
    """
    with _one_thread():
        for call in calls.values():
            call()
        turns = progress(range(rounds), label="in turns")
        times = [{name: _seconds(call) for name, call in calls.items()} for _ in turns]
    return {name: statistics.median(turn[name] for turn in times) for name in calls}


def cost_of(f: Callable[..., Any], /, *args: Any, rounds: int = 5) -> Cost:
    """The median seconds of some calls f(*args), as `in_turns` takes them, after one that is watched for its memory."""
    with _one_thread():
        peak = peak_bytes(lambda: f(*args))
        times = [_seconds(lambda: f(*args)) for _ in range(rounds)]
    return Cost(statistics.median(times), peak)


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


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _seconds(call: Callable[[], Any]) -> float:
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.synchronize()
    clock = time.perf_counter if on_gpu else time.process_time
    start = clock()
    call()
    if on_gpu:
        torch.cuda.synchronize()
    return clock() - start
