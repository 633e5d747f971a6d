"""Takes the probes out of a public file: what only they need goes with them, what students read are checks."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator

WIDTH = 120
DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)


def split(source: str) -> tuple[str, str]:
    """The text without probes and what only they use, and that as text to run where the rest has run; both verbatim.

    Imports are divided name by name. Statements that define nothing stay, with what they use.
    """
    tree = ast.parse(source)
    probes = [node for node in tree.body if _is_probe(node)]
    if not probes:
        return source, ""
    needed = _reached([node for node in tree.body if not isinstance(node, DEFINITIONS) or _is_check(node)], tree)
    wanted = _reached(probes, tree) - needed
    lines, end, gap = source.split("\n"), 0, 0
    kept: list[str] = []
    moved: list[str] = []
    for node in tree.body:
        text = lines[end : node.end_lineno]
        end = node.end_lineno or 0
        ours, theirs = _divided(node, text, wanted)
        moved += theirs
        blank = next(i for i, line in enumerate(text) if line.strip())
        gap = max(gap, blank)
        if ours:
            kept += [""] * gap + ours[next(i for i, line in enumerate(ours) if line.strip()) :]
            gap = 0
    rest = "\n".join(lines[end:]).rstrip()
    return "\n".join(kept) + (f"\n{rest}" if rest else "") + "\n", "\n".join(moved).strip("\n") + "\n"


def _divided(node: ast.stmt, text: list[str], wanted: set[str]) -> tuple[list[str], list[str]]:
    """The lines of a statement that stay, and those that go with the probes."""
    names = _defined(node)
    going = names & wanted
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return text, text
    if going == names and names:
        return [], text
    if not going or not isinstance(node, ast.Import | ast.ImportFrom):
        return text, []
    above = text[: len(text) - ((node.end_lineno or 0) - node.lineno + 1)]
    ours = [alias for alias in node.names if _bound(alias) not in going]
    theirs = [alias for alias in node.names if _bound(alias) in going]
    return [*above, *_import(node, ours)], _import(node, theirs)


def _import(node: ast.Import | ast.ImportFrom, aliases: list[ast.alias]) -> list[str]:
    """The import of these names alone."""
    names = ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in aliases)
    head = f"from {'.' * node.level}{node.module or ''} import" if isinstance(node, ast.ImportFrom) else "import"
    if len(head) + len(names) < WIDTH:
        return [f"{head} {names}"]
    return [f"{head} (", *textwrap.wrap(names, WIDTH, initial_indent="    ", subsequent_indent="    "), ")"]


def _reached(start: Iterable[ast.stmt], tree: ast.Module) -> set[str]:
    """The names that these statements define and use, and those that the definitions of these use."""
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        names = (_defined(node) if not isinstance(node, ast.Import | ast.ImportFrom) else set()) | set(_used(node))
        new = names - found
        found |= new
        waiting += [other for other in tree.body if isinstance(other, DEFINITIONS) and _defined(other) & new]
    return found


def _used(node: ast.stmt) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement gives to the file."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {_bound(alias) for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_probe(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("probe_")


def _is_check(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
