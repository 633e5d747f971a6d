"""A box without autograd: gradients that are to be worked out by hand are asked for where nothing else can.

Done in a fresh fork before any cell has run: the engine's entries are taken out of torch, not hidden.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import torch

TOLD = "autograd is switched off here"
ENTRIES = ("run_backward", "queue_callback")
# Code of torch's own language could ask for gradients, too, and so could operations that are looked up by name.
COMPILERS = (
    "_jit_",
    "_create_",
    "_load_",
    "_import_ir",
    "import_ir",
    "_compile",
    "_get_operation",
    "_pickle_load",
    "_dispatch_library",
)
BESIDES = ("CompilationUnit", "parse_ir", "Graph", "_distributed_autograd", "ScriptFunction", "ScriptModule")
CALL = 16 * ctypes.sizeof(ctypes.c_void_p)  # where a type has its `tp_call`
RECIPES = ("torch._decomp", "torch._refs")
OPERATIONS = {"_backward", "_make_dual", "_fw_primal"}  # besides derivatives that are ready made, known by their names


def take_out_autograd() -> None:
    """From here on this process can compute no gradient, forward or backward, by torch's own means."""
    library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # registrations end with it, and nobody is to find it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for full in torch._C._dispatch_get_all_op_names():
            space, _, name = full.partition("::")
            if space == "aten" and ("backward" in name or name.partition(".")[0] in OPERATIONS):
                for key in ("CompositeImplicitAutograd", "CPU", "AutogradCPU"):
                    library.impl(name, key, _refuse)
    for kind in type(torch.autograd.Variable._execution_engine).__mro__[:-1]:
        _take_out(kind, ENTRIES)
    for kind in vars(torch._C._functions).values():
        if isinstance(kind, type):  # a step of the graph: whoever calls one by one needs no engine
            ctypes.c_void_p.from_address(id(kind) + CALL).value = None
            _take_out(kind, ("__call__",))
    _take_out_recipes()
    for name in list(vars(torch._C)):
        if name.startswith(COMPILERS) or name in BESIDES:
            delattr(torch._C, name)


def _take_out_recipes() -> None:
    """Torch also has its backward functions written in Python, of the very operations that an answer is made of."""
    for module in [module for name, module in sys.modules.items() if name.startswith(RECIPES)]:
        for name in [name for name in vars(module) if "backward" in name]:
            delattr(module, name)
    for table in torch._decomp.global_decomposition_table.values():
        for operation in [operation for operation in table if "backward" in str(operation)]:
            del table[operation]


def _take_out(kind: type, names: Iterable[str]) -> None:
    """Take entries out of a type that Python does not let anybody change."""
    entries = gc.get_referents(vars(kind))[0]
    for name in names:
        entries.pop(name, None)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError(TOLD)
