"""Rules for a question's suite that are read off its text: what a public check may ask for, and what is still to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.errors import Problem

TODO = re.compile(r"\bTODO\b:? ?(.*)")
GENERATOR = "rng"
STAFF = {"reference": "compare with values that stand in the check", "student": "ask for the student's objects by name",
         "in_box": "use `run_beside` of course_utils.instruments"}  # fmt: skip


def todo_problems(path: Path, text: str, about: str, above: int = 0) -> Iterator[Problem]:
    """Every line that still has a TODO mark; `above` lines of the file stand before the text."""
    for line, written in enumerate(text.split("\n"), above + 1):
        if found := TODO.search(written):
            asked = found[1].strip(" .;,")
            yield Problem(path, line, f"TODO: {asked}.", "Write it, and take the mark off.", about)


def public_problems(path: Path, names: Iterable[str]) -> Iterator[Problem]:
    """Checks and probes that ask for what students do not have: they have their answers, and a check has `rng`."""
    if not path.is_file():
        return
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        yield Problem(path, error.lineno or 1, f"not valid Python ({error.msg}).", "Mend the code.")
        return
    answers = set(names)
    marks = {
        target.id: assigned.value
        for assigned in tree.body
        if isinstance(assigned, ast.Assign)
        for target in assigned.targets
        if isinstance(target, ast.Name)
    }
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name.startswith(("test_", "probe_")):
            known = answers | {name for mark in function.decorator_list for name in _parameters(mark, marks)}
            known |= {GENERATOR} if function.name.startswith("test_") else set()
            for asked in _asked_for(function):
                if asked.arg not in known:
                    yield Problem(
                        path,
                        asked.lineno,
                        f"`{function.name}` asks for `{asked.arg}`, which students do not have.",
                        _remedy(asked.arg, sorted(answers)),
                    )


def _remedy(name: str, answers: list[str]) -> str:
    if name in STAFF:
        return f"That is for hidden suites: {STAFF[name]}, or move the check there."
    return f"Ask for `{GENERATOR}`, a pytest parameter, or one of {', '.join(answers)}."


def _asked_for(function: ast.FunctionDef) -> list[ast.arg]:
    """The arguments that somebody must fill in: those without a default."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    wanted = positional[: len(positional) - len(given.defaults)]
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return [*wanted, *(argument for argument, default in pairs if default is None)]


def _parameters(mark: ast.expr, marks: dict[str, ast.expr]) -> list[str]:
    """The names that a `pytest.mark.parametrize` fills in, also one that stands in a variable of the file."""
    if isinstance(mark, ast.Name) and mark.id in marks:
        mark = marks[mark.id]
    if not isinstance(mark, ast.Call) or not ast.unparse(mark.func).endswith("mark.parametrize") or not mark.args:
        return []
    try:
        names = ast.literal_eval(mark.args[0])
    except ValueError:
        return []
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
