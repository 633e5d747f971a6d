"""Collecting tests imports torch only where what they test needs it when it is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FREE = 54  # so many files of tests need no torch, and stay so, however many come that do
WITHOUT = ("attacks", "browser", "classroom", "docs", "frontends")  # whole folders that need none
COLLECT = """
import sys, pytest
assert pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[1:]]) == 0
print("torch is imported" if "torch" in sys.modules else "no torch")
"""


def imported(path: Path) -> Iterator[str]:
    """What a file imports when it is imported: modules, and names in them that may be modules."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) or "TYPE_CHECKING" in ast.unparse(statement)[:20]:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def ours(name: str) -> Iterator[Path]:
    """The files of a module of this repository and of the packages around it."""
    parts = name.split(".") if name.startswith(("autograder", "course_utils")) else []
    for end in range(1, len(parts) + 1):
        place = ROOT.joinpath(*parts[:end])
        yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())


@cache
def reached(path: Path) -> frozenset[Path]:
    """The file, and every one of ours that is imported with it."""
    found, waiting = set[Path](), [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += [other for name in imported(file) for other in ours(name)]
    return frozenset(found)


def needs_torch(path: Path) -> bool:
    around = [folder / "conftest.py" for folder in (path.parent, ROOT / "tests")]
    files = {path, *(file for file in around if file.is_file())}
    return any(name.split(".")[0] == "torch" for f in files for file in reached(f) for name in imported(file))


def test_torch_is_imported_only_where_it_is_needed() -> None:
    files = [*(ROOT / "tests").glob("test_*.py"), *(ROOT / "tests").glob("*/test_*.py")]
    free = sorted(path for path in files if not needs_torch(path))
    assert [path for path in files if path.parent.name in WITHOUT and path not in free] == []
    assert len(free) >= FREE
    command = [sys.executable, "-c", COLLECT, *map(str, free)]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert done.stdout.splitlines()[-1] == "no torch", done.stdout[-2000:] + done.stderr[-2000:]
