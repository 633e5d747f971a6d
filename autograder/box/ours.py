"""What the judge runs in a box is ours, whatever a notebook has put in the place of our functions.

Counts of work and watched training runs are taken beside the student's code. A cell that assigns to a module of
ours, or changes what a list or a function in it holds, must not change what they say. This makes lying harder, it is no
wall: code in one process can always lie, so whatever can be measured in the judge is measured there.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache, cached_property, partial
from operator import is_
from typing import Any

PACKAGES: tuple[str, ...] = ("course_utils", "autograder.in_box")  # what students import, what hidden suites use
_MISSING = object()
_INTERPRETERS_OWN = {"__builtins__", "__spec__", "__loader__"}
_CONTAINERS: dict[type, tuple[Callable[..., object], Callable[..., object]]] = {  # how to empty and to fill them
    dict: (dict.clear, dict.update),
    list: (list.clear, list.extend),
    set: (set.clear, set.update),
    deque: (deque.clear, deque.extend),
}
_WRAPPERS: dict[type, tuple[str, ...]] = {  # and what they wrap
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    partial: ("func", "args", "keywords"),
    types.MethodType: ("__func__", "__self__"),
}
_CACHED = type(cache(int))


def use(packages: Iterable[str]) -> None:
    """From now on these are our packages: those of the course at hand."""
    global PACKAGES
    PACKAGES = tuple(packages)


def is_ours(module: str) -> bool:
    """Whether a module of that name is in one of our packages."""
    return any(module == package or module.startswith(f"{package}.") for package in PACKAGES)


def our_modules() -> Iterator[str]:
    """The names of all our modules, in every room of every package; imports the packages to find them."""
    for package in PACKAGES:
        found = importlib.import_module(package)
        yield package
        inside = getattr(found, "__path__", ())  # none where it is a file
        yield from (module.name for module in pkgutil.walk_packages(inside, f"{package}."))


class Ours:
    """Our modules as they are now and all that can be reached from them: names, classes, code, contents."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self._functions: list[tuple[types.FunctionType, types.CodeType, Any, Any]] = []
        self._bare: list[types.FunctionType] = []  # without attributes, as nearly all are
        seen: dict[int, Any] = {}  # holds what it has seen, so that no number is given twice
        waiting: list[Any] = [module for name, module in list(sys.modules.items()) if is_ours(name)]
        while waiting:
            value = waiting.pop()
            if id(value) not in seen:
                seen[id(value)] = value
                waiting += self._keep(value)

    def restore(self) -> None:
        """Undo every change since; modules that were imported later stay, and no cache does."""
        for function, code, defaults, by_name in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                function.__code__, function.__defaults__ = code, defaults
            if function.__kwdefaults__ is not by_name:
                function.__kwdefaults__ = by_name
        for function in self._bare:
            if function.__dict__:
                function.__dict__.clear()
        for undo in self._undo:
            undo()

    def _keep(self, value: Any) -> Iterable[Any]:
        """Note how to put one value back, and give what it holds; what is not ours is left alone."""
        for kind, (clear, fill) in _CONTAINERS.items():
            if isinstance(value, kind):
                kept = kind(value)
                self._undo.append(partial(_refill, value, kept, clear, fill))
                return [*kept, *kept.values()] if isinstance(kept, dict) else kept
        for kind, parts in _WRAPPERS.items():
            if isinstance(value, kind):
                return [getattr(value, part) for part in parts]
        if isinstance(value, tuple | frozenset):
            return value
        if isinstance(value, _CACHED):
            self._undo.append(value.cache_clear)
            return value.__wrapped__, vars(value)
        if isinstance(value, types.ModuleType):
            return self._keep_module(vars(value)) if is_ours(value.__name__) else ()
        if isinstance(value, type):
            return self._keep_class(value) if is_ours(str(value.__module__)) else ()
        if isinstance(value, types.FunctionType):
            return self._keep_function(value) if is_ours(str(value.__module__)) else ()
        if hasattr(value, "__array__"):
            return self._keep_numbers(value)
        return [vars(value)] if is_ours(type(value).__module__) and hasattr(value, "__dict__") else ()

    def _keep_module(self, names: dict[str, Any]) -> Iterable[Any]:
        kept = dict(names)
        self._undo.append(partial(_rename, names, kept))
        return [value for name, value in kept.items() if name not in _INTERPRETERS_OWN]

    def _keep_class(self, cls: type) -> Iterable[Any]:
        kept = dict(vars(cls))
        self._undo.append(partial(_redefine, cls, kept, cls.__bases__))
        return kept.values()

    def _keep_function(self, function: types.FunctionType) -> Iterable[Any]:
        kept = function.__code__, function.__defaults__, function.__kwdefaults__
        self._functions.append((function, *kept))
        filled = [cell for cell in function.__closure__ or () if cell != types.CellType()]
        cells = [(cell, cell.cell_contents) for cell in filled]
        self._undo += [partial(setattr, cell, "cell_contents", content) for cell, content in cells]
        if not vars(function):
            self._bare.append(function)
        return [kept[1], kept[2], vars(function) or None, *(content for _, content in cells)]

    def _keep_numbers(self, array: Any) -> Iterable[Any]:
        """Of an array of NumPy or a tensor."""
        whole = array.detach() if hasattr(array, "detach") else array
        self._undo.append(partial(whole.__setitem__, ..., deepcopy(whole)))
        return ()


def _refill(container: Any, kept: Any, clear: Callable[[Any], object], fill: Callable[[Any, Any], object]) -> None:
    same = len(container) == len(kept) and all(map(is_, container, kept))
    if not same or isinstance(kept, dict) and not all(map(is_, container.values(), kept.values())):
        clear(container)
        fill(container, kept)


def _rename(names: dict[str, Any], kept: dict[str, Any]) -> None:
    for name in [name for name, value in names.items() if kept.get(name, _MISSING) is not value]:
        if name in kept:
            names[name] = kept[name]
        elif not isinstance(names[name], types.ModuleType):
            del names[name]
    if len(names) < len(kept) or not names.keys() >= kept.keys():
        names.update({name: value for name, value in kept.items() if name not in names})


def _redefine(cls: type, kept: dict[str, Any], bases: tuple[type, ...]) -> None:
    if cls.__bases__ != bases:
        cls.__bases__ = bases
    names = vars(cls)
    for name in [name for name, value in names.items() if kept.get(name, _MISSING) is not value]:
        type.__delattr__(cls, name)
    for name in kept.keys() - names.keys():
        type.__setattr__(cls, name, kept[name])


@cache
def ours() -> Ours:
    """Taken once, before any cell has run: in the zygote, where boxes are forked from it."""
    return Ours()
