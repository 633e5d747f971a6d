"""An answer under another name: which definition of a cell was meant for a name that is missing."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

LONGEST = 80  # letters of a name that anybody could have meant
MOST = 5  # names that are told
Parameters = tuple[str, ...]  # "class" or "def", then the names in order, `*` before those that are given by name alone


def signatures(statements: Iterable[ast.stmt]) -> dict[str, Parameters]:
    """The parameters of every public function and class that these statements define."""
    found = {}
    for node in statements:
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            start = next((method for method in methods if method.name == "__init__"), None)
            found[node.name] = ("class", *(_parameters(start.args) if start else ()))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = ("def", *_parameters(node.args))
    return {name: told for name, told in found.items() if not name.startswith("_") and len(name) <= LONGEST}


def _parameters(arguments: ast.arguments) -> Parameters:
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    by_name = sorted(argument.arg for argument in arguments.kwonlyargs)
    return (*positional, *(["*", *by_name] if by_name else []))


@dataclass(frozen=True)
class Renamed:
    """What stands where a name was expected: all that is defined there, and the one that fits, or nothing."""

    expected: str
    defined: tuple[str, ...]
    meant: str = ""

    def __str__(self) -> str:
        others = ", ".join(f"`{name}`" for name in self.defined[:MOST]) + ", ..." * (len(self.defined) > MOST)
        return f"your cell defines {others}; expected `{self.expected}`"


def renamed(
    missing: Iterable[str], wanted: Mapping[str, Parameters], defined: Mapping[str, Parameters], known: Collection[str]
) -> list[Renamed]:
    """For each missing name what a cell defines instead, names of other answers aside.

    One is meant where it alone has the parameters that are wanted, and where no other missing name wants the same.
    """
    others = {name: parameters for name, parameters in defined.items() if name not in known}
    asked = [name for name in missing if name in wanted]
    found = []
    for name in asked if others else []:
        alike = [one for one in asked if wanted[one] == wanted[name]]
        fitting = [other for other, parameters in others.items() if parameters == wanted[name]]
        found.append(Renamed(name, tuple(others), fitting[0] if len(fitting) == len(alike) == 1 else ""))
    return found
