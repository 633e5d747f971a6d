"""A box without autograd: gradients that are to be worked out by hand are asked for where nothing else can.

Done in a fresh fork before any cell has run: the engine's entries are taken out of torch, not hidden.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import torch

TOLD = "autograd is switched off here"
ENTRIES = ("run_backward", "queue_callback")
COMPILERS = (  # code of torch's own language could ask for gradients, too
    *("_jit_script_compile", "_create_function_from_trace", "_create_method_from_trace"),
    *("_jit_script_class_compile", "CompilationUnit", "import_ir_module", "import_ir_module_from_buffer"),
)
OPERATIONS = (  # the engine's own, and derivatives that are ready made
    *("_backward", "_make_dual", "_fw_primal", "native_layer_norm_backward", "native_batch_norm_backward"),
    *("native_group_norm_backward", "_softmax_backward_data", "_log_softmax_backward_data"),
)

_kept: list[Any] = []  # registrations end when they are forgotten


def take_out_autograd() -> None:
    """From here on this process can compute no gradient, forward or backward, by torch's own means."""
    engine = type(torch.autograd.Variable._execution_engine).__mro__
    for kind in engine:
        names = gc.get_referents(vars(kind))[0] if kind is not object else {}
        for name in ENTRIES:
            names.pop(name, None)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    for name in COMPILERS:
        if hasattr(torch._C, name):
            delattr(torch._C, name)
    library = torch.library.Library("aten", "IMPL")
    for name in OPERATIONS:
        for key in ("CompositeImplicitAutograd", "CPU", "AutogradCPU"):
            try:
                library.impl(name, _refuse, key)
            except RuntimeError:  # not every operation may be replaced at every key
                continue
    _kept.append(library)


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError(TOLD)
