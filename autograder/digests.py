"""What a question's facts can reach, as one hash: while it is the same, nothing has to run again.

Code is compared by meaning: comments and docstrings are no part of it, nor are points, weights and texts, from which
no fact follows. Modules count where code that runs for the question imports them, at once or in a function.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from autograder.catalogue import Entry
from autograder.homework import Homework
from autograder.places import COURSE, PACKAGE, REPOSITORY, THE_COURSE
from autograder.submission import given_cells

LIBRARIES = ("numpy", "torch")  # in whose numbers the facts are told
ENGINE = ("judge", "box")  # folders of this package: what asks, what answers, and what passes between them
FACTS = ("answers", "box.", "in_box", "judge.", "submission", "suites")  # modules of ours that find out facts
RUNS = tuple(f"autograder.{name}" for name in FACTS)
SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Code:
    """Python text, understood: a hash of what it does, what it imports, which names stand in it."""

    meaning: str
    imports: tuple[str, ...]
    names: frozenset[str]
    homes: dict[str, str]  # of names that a package loads when they are asked for: name -> module


@cache
def question_digest(homework: Homework, question: str) -> str:
    """A hash of everything on which the facts about an answer depend, besides the submission.

    Whether an earlier answer is right decides about help with this one, so what it `uses` counts as a whole.
    """
    asked = homework.question(question)
    tests = [unweighed(_text(file)) for file in (homework.public_file(question), homework.hidden_file(question))]
    mistakes = homework.mistakes[question]
    given = [understood(source) for source in given_cells(homework)]
    seeds = [*tests, *(understood(entry.source) for entry in mistakes)]
    answers = dict(_answers(homework, question, seeds))
    reached = _reached([*given, *seeds, *answers.values()], engine_modules())
    return digest_of(
        question,
        {part: question_digest(homework, part) for part in asked.uses},
        asked.limits,
        [code.meaning for code in (*given, *tests)],
        told_entries(mistakes),
        {part: code.meaning for part, code in answers.items()},
        reached,
        {library: _version(library) for library in LIBRARIES},
        THE_COURSE.rng,
    )


def digest_of(*parts: Any) -> str:
    """One hash of plain data."""
    return _hash(json.dumps(parts, sort_keys=True))


def told_entries(entries: Iterable[Entry]) -> list[tuple[str, str, str]]:
    """A catalogue's entries as data: the hint is a fact too, for a student reads it."""
    return [(entry.label, entry.text, understood(entry.source).meaning) for entry in entries]


def module_meaning(*files: Path) -> list[str]:
    """What modules of ours do."""
    return [understood(_text(file)).meaning for file in files]


@cache
def understood(text: str) -> Code:
    """What Python text means; text that is none (told where it is loaded) means itself."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return Code(_hash(text), (), frozenset(), {})
    for node in ast.walk(tree):
        if isinstance(node, SCOPES) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return _code(tree)


@cache
def unweighed(suite: str) -> Code:
    """What a suite's code does, whatever its cases weigh; the sentences of its cases are facts."""
    try:
        tree = ast.parse(suite)
    except (SyntaxError, ValueError):
        return understood(suite)
    tree.body = [node for node in tree.body if not _is_import_of_pytest(node)]  # may have come for a weight
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [one for one in node.decorator_list if "mark.weight(" not in ast.unparse(one)]
        if isinstance(node, SCOPES) and (doc := ast.get_docstring(node)) is not None:
            case = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            sentence: list[ast.stmt] = [ast.Expr(ast.Constant(doc.partition("\n")[0]))] if case else []
            node.body = sentence + node.body[1:]
    return _code(tree)


def engine_modules() -> list[str]:
    """The modules that find out facts, whatever the question."""
    files = [path for folder in ENGINE for path in (PACKAGE / folder).rglob("*.py")] + [PACKAGE / "submission.py"]
    names = [".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in files]
    return sorted(name.removesuffix(".__init__") for name in names)


def _answers(homework: Homework, question: str, seeds: list[Code]) -> Iterator[tuple[str, Code]]:
    """The reference's answers that count: the question's own, and those whose names stand in what is reached."""
    left = {asked.id: asked for asked in homework.questions}
    wanted = {question, *homework.question(question).uses}
    names = frozenset[str]().union(*(code.names for code in seeds))
    while found := [asked for asked in left.values() if asked.id in wanted or names & set(asked.names)]:
        for asked in found:
            del left[asked.id]
            code = understood(asked.answer)
            names |= code.names
            yield asked.id, code


def _reached(start: Iterable[Code], modules: Iterable[str]) -> dict[str, str]:
    """What every module of ours does that the code imports, or that one of those imports; by name."""
    found: dict[str, str] = {}
    waiting = [*modules, *(name for code in start for name in code.imports)]
    while waiting:
        name = waiting.pop()
        if name in found or (name.partition(".")[0] == PACKAGE.name and not name.startswith(RUNS)):
            continue  # the rest of the staff's code only reads sources: what it reads is in the digest
        file = _file(name)
        package, _, last = name.rpartition(".")
        if file is not None:
            code = understood(_text(file))
            found[name] = code.meaning
            waiting += [package, *code.imports] if package else code.imports
        elif package and (home := _file(package)) is not None:  # a name in a package, or one that it loads when asked
            lazy = understood(_text(home)).homes.get(last)
            waiting += [package, f"{package}.{lazy}"] if lazy else [package]
    return found


@cache
def _file(module: str) -> Path | None:
    """The file of a module of ours."""
    for root in (REPOSITORY, COURSE):
        path = root.joinpath(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _code(tree: ast.Module) -> Code:
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imports = sorted({name for node in nodes for name in _imported(node)})
    homes = {key: value for node in nodes if isinstance(node, ast.Dict) for key, value in _texts(node)}
    return Code(_hash(_dump(tree)), tuple(imports), frozenset(names), homes)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _texts(node: ast.Dict) -> Iterator[tuple[str, str]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield str(key.value), value.value


def _dump(node: Any) -> str:
    """The tree as text that is the same in every version of Python: empty fields are left out."""
    if isinstance(node, ast.AST):
        fields = [(name, getattr(node, name, None)) for name in node._fields if name != "kind"]
        told = ",".join(f"{name}={_dump(value)}" for name, value in fields if value is not None and value != [])
        return f"{type(node).__name__}({told})"
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    return repr(node)


def _is_import_of_pytest(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and ast.unparse(node) == "import pytest"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _version(library: str) -> str:
    try:
        return version(library).partition("+")[0]  # whatever device it was built for
    except PackageNotFoundError:
        return ""
