"""What a notebook sets ends with its cells: settings of torch, NumPy and Python are put back before each call.

A default device or an error mode left behind is a habit of the notebook's author, no answer to a question. And where
there is no GPU, what a cell puts on one while the notebook is run stays on the CPU, so that the rest of the cell runs.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.nn.modules import module as modules
from torch.overrides import TorchFunctionMode

MISSING = ("cuda", "mps", "xpu")  # devices of other machines that notebooks ask for
_PRINTING = torch._tensor_str.PRINT_OPTS
_HOOKS = [value for name, value in vars(modules).items() if name.startswith("_global_") and isinstance(value, dict)]
_NUMPY_PRINTING = ("precision", "threshold", "edgeitems", "linewidth", "suppress", "floatmode", "sign")


def _numpy_printing() -> dict[str, Any]:
    return {name: value for name, value in np.get_printoptions().items() if name in _NUMPY_PRINTING}


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


_KERNELS = ("math", "flash", "mem_efficient", "cudnn")  # of ready-made attention, by which torch may take one
_TINY = torch.tensor(torch.finfo(torch.float64).tiny, dtype=torch.float64)


def _kernels() -> list[bool]:
    return [getattr(torch._C, f"_get_{name}_sdp_enabled")() for name in _KERNELS]


def _set_kernels(old: list[bool]) -> None:
    for name, value in zip(_KERNELS, old, strict=True):
        getattr(torch._C, f"_set_sdp_use_{name}")(value)


def _set_filters(old: list[Any]) -> None:
    warnings.filters = old.copy()


def _take_off_hooks(_: object) -> None:
    for hooks in _HOOKS:
        hooks.clear()


# what is set for the whole process: how to ask for it, how to set it to what was asked before
_PAIRS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch._C._set_grad_enabled),
    (_deterministic, lambda old: torch.use_deterministic_algorithms(old[0], warn_only=old[1])),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (lambda: torch.is_autocast_enabled("cpu"), lambda old: torch.set_autocast_enabled("cpu", old)),
    (lambda: torch.get_autocast_dtype("cpu"), lambda old: torch.set_autocast_dtype("cpu", old)),
    (lambda: (_TINY / 2).item() == 0, torch.set_flush_denormal),
    (_kernels, _set_kernels),
    (lambda: dict(vars(_PRINTING)), lambda old: vars(_PRINTING).update(old)),
    (np.geterr, lambda old: np.seterr(**old)),
    (_numpy_printing, lambda old: np.set_printoptions(**old)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (gc.isenabled, lambda old: gc.enable() if old else gc.disable()),
    (sys.gettrace, sys.settrace),
    (sys.getprofile, sys.setprofile),
    (threading.gettrace, threading.settrace),
    (threading.getprofile, threading.setprofile),
    (lambda: list(warnings.filters), _set_filters),
    (lambda: [hooks for hooks in _HOOKS if hooks], _take_off_hooks),
)


class Defaults:
    """The settings as they are now, before any cell has run."""

    def __init__(self) -> None:
        self._before = [ask() for ask, _ in _PAIRS]
        self._folder = os.getcwd()
        self._normal: list[Any] = []  # ways out of an inference mode that was entered and never left

    def restore(self) -> None:
        """Put back whatever is another now."""
        if torch._C._len_torch_function_stack():  # a default device is kept there, too
            torch.set_default_device(None)
            while torch._C._len_torch_function_stack():
                torch._C._pop_torch_function_stack()
        if torch.is_inference_mode_enabled():
            self._normal.append(torch.inference_mode(False))
            self._normal[-1].__enter__()
        for (ask, put), old in zip(_PAIRS, self._before, strict=True):
            if ask() != old:
                put(old)
        if not _is_here(self._folder):
            os.chdir(self._folder)


def _is_here(folder: str) -> bool:
    try:
        return os.getcwd() == folder
    except OSError:  # a folder that is gone
        return False


class NoGpu(TorchFunctionMode):
    """While this is on, what is asked for on a GPU that is not there is done on the CPU; `asked` tells of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The same call, on the CPU."""
        kwargs = kwargs or {}
        if func is torch.device and _asked_by_torch():  # whose modules it names, and what it finds out it keeps
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in MISSING and isinstance(args[0], torch.Tensor):  # tensor.cuda(), with or without the number of one
            self.asked = True
            return args[0]
        if any(map(_missing, (*args, *kwargs.values()))):
            args = tuple(map(self._here, args))
            kwargs = {key: self._here(value) for key, value in kwargs.items()}
        return func(*args, **kwargs)

    def set_default_device(self, device: Any) -> None:
        """In the place of torch's own."""
        _set_default_device(self._here(device))

    def _here(self, value: Any) -> Any:
        if not _missing(value):
            return value
        self.asked = True
        return "cpu" if isinstance(value, str) else torch.device("cpu")


_set_default_device = torch.set_default_device


def _missing(value: Any) -> bool:
    """Whether this names a device that is not there."""
    if isinstance(value, torch.device):
        return value.type in MISSING
    return isinstance(value, str) and value.split(":")[0] in MISSING


def _asked_by_torch() -> bool:
    """Whether the call that a mode is asked about stands in torch's own code."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0] == "torch"


@contextmanager
def without_gpu() -> Iterator[NoGpu]:
    """Run a notebook's cells on a machine that has no GPU, whatever they ask for."""
    mode = NoGpu()
    if torch.cuda.is_available():
        yield mode
        return
    torch.set_default_device = mode.set_default_device
    try:
        with mode:
            yield mode
    finally:
        torch.set_default_device = _set_default_device
