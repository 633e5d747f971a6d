"""What the judge runs in a box is ours, whatever a notebook has put in the place of our functions.

Counts of work and watched training runs are taken beside the student's code. A cell that assigns to a module of
course_utils must not change what they say. This makes lying harder, it is no wall: code in one process can always lie,
so whatever can be measured in the judge is measured there.
"""

from __future__ import annotations

import sys
import types
from functools import cache
from typing import Any

PACKAGE = "course_utils"
_MISSING = object()


class Ours:
    """The modules of course_utils as they are now: their names, and inside their classes and functions."""

    def __init__(self) -> None:
        modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == PACKAGE]
        self._modules = [(vars(module), dict(vars(module))) for module in modules]
        objects = {id(value): value for module in modules for value in vars(module).values() if _is_ours(value)}
        self._classes = [(value, dict(vars(value))) for value in objects.values() if isinstance(value, type)]
        functions = {id(value): value for value in objects.values() if isinstance(value, types.FunctionType)}
        for _, names in self._classes:
            functions |= {id(value): value for value in names.values() if isinstance(value, types.FunctionType)}
        self._functions = [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in functions.values()]

    def restore(self) -> None:
        """Undo every change since; modules that were imported later stay."""
        for names, kept in self._modules:
            for name in [name for name, value in names.items() if kept.get(name, _MISSING) is not value]:
                if name in kept:
                    names[name] = kept[name]
                elif not isinstance(names[name], types.ModuleType):
                    del names[name]
            names.update({name: value for name, value in kept.items() if name not in names})
        for cls, kept in self._classes:
            for name in [name for name, value in vars(cls).items() if kept.get(name, _MISSING) is not value]:
                type.__delattr__(cls, name)
            for name in kept.keys() - vars(cls).keys():
                type.__setattr__(cls, name, kept[name])
        for function, code, defaults, by_name in self._functions:
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, by_name


def _is_ours(value: Any) -> bool:
    return isinstance(value, (type, types.FunctionType)) and str(value.__module__).partition(".")[0] == PACKAGE


@cache
def ours() -> Ours:
    """Taken once, before any cell has run: in the zygote, where boxes are forked from it."""
    return Ours()
