"""What a piece of code defines at its top level, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def defined_names(statements: Iterable[ast.stmt]) -> tuple[str, ...]:
    """The public names that these statements define."""
    names: list[str] = []
    for node in statements:
        if isinstance(node, _DEFINITIONS):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return tuple(dict.fromkeys(name for name in names if not name.startswith("_")))


def imported_names(statements: Iterable[ast.stmt]) -> tuple[str, ...]:
    """The names that these statements import."""
    imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    return tuple((alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names)


def stub_names(statements: Iterable[ast.stmt]) -> set[str]:
    """The definitions that still raise the course's NotImplementedError."""
    return {node.name for node in statements if isinstance(node, _DEFINITIONS) and _raises_a_stub(node)}


def _raises_a_stub(node: ast.AST) -> bool:
    raised = (child.exc for child in ast.walk(node) if isinstance(child, ast.Raise))
    calls = (exc for exc in raised if isinstance(exc, ast.Call) and isinstance(exc.func, ast.Name) and exc.args)
    return any(call.func.id == "NotImplementedError" for call in calls)  # type: ignore[attr-defined]
