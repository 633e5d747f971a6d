"""Which modules of course_utils a homework needs: what its notebook and checks import, and what that imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from autograder.errors import BadInput
from autograder.places import COURSE_UTILS, THE_COURSE

EVERYWHERE = ("checking", "explain", "terminal")  # rooms that every homework has
GRADER = "course_utils.notebook.grader"  # what every built check imports


def needed_modules(sources: Iterable[str]) -> list[Path]:
    """The files of course_utils that these sources need, packages' own files included; whole `rooms` of the course.

    Where students have no torch, what needs it stays at home; where a source imports such a module, that is told.
    """
    wanted = {GRADER} | {name for source in sources for name in imported_modules(source)}
    if "torch" not in THE_COURSE.student_packages:
        for name in sorted(wanted):
            if (path := _path(name)) is not None and _needs_torch(path):
                raise BadInput(
                    f"A notebook or check imports {name}, which needs torch. Take that import out, or put torch into "
                    f"`student_packages` of {THE_COURSE.file}."
                )
    for room in (*EVERYWHERE, *THE_COURSE.rooms):
        folder = COURSE_UTILS / room.replace(".", "/")
        if not folder.is_dir():
            raise BadInput(f"{THE_COURSE.file}: course_utils has no room {room}. Take it out of `rooms`.")
        wanted |= {_name(path) for path in folder.rglob("*.py")}
    found: dict[str, Path] = {}
    waiting = ["course_utils", *wanted]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in found or path is None or ("torch" not in THE_COURSE.student_packages and _needs_torch(path)):
            continue
        found[name] = path
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if name != "course_utils":  # it names modules, and loads none of them by itself
            waiting += imported_modules(path.read_text(encoding="utf-8"))
    return sorted(found.values())


def imported_modules(source: str) -> Iterator[str]:
    """The modules of course_utils that a source imports, by their own names, wherever the import stands."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell of magics
        return
    for node in ast.walk(tree):
        for name in _names(node):
            yield from _resolved(name)


def _names(node: ast.AST) -> list[str]:
    """What an import names: modules, or things in a module that may be modules too."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _resolved(name: str) -> Iterator[str]:
    """A module's own name for a name in an import; nothing for what is not ours, or no module."""
    if name.partition(".")[0] != "course_utils":
        return
    import course_utils

    head, _, short = name.rpartition(".")
    if head == "course_utils" and _path(name) is None:
        homes = course_utils._Moved.places | course_utils._HOMES
        homes |= {module: f"notebook.{module}" for module in course_utils._MODULES}
        name = f"course_utils.{homes.get(short, short)}"
    if _path(name) is not None:
        yield name


@cache
def _path(name: str) -> Path | None:
    place = COURSE_UTILS.parent / name.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _name(path: Path) -> str:
    place = path.relative_to(COURSE_UTILS.parent).with_suffix("")
    return ".".join(place.parts[:-1] if place.name == "__init__" else place.parts)


@cache
def _needs_torch(path: Path) -> bool:
    """Whether torch is imported when this module is, by itself or by one of ours that it imports."""
    names = [name for node in ast.parse(path.read_text(encoding="utf-8")).body for name in _names(node)]
    if any(name.partition(".")[0] == "torch" for name in names):
        return True
    found = (_path(module) for name in names for module in _resolved(name))
    return any(_needs_torch(other) for other in found if other is not None and other != path)
