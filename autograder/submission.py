"""Read what a student handed in: a notebook or percent file becomes cells to run, and notes on what was assumed.

A submission is only a source of functions. Nothing in it is trusted: neither its metadata nor its size.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from autograder.answers import CHECK, FoundCell, another_homework, answer_cells, free_texts, helpers_of, new_meanings
from autograder.assumptions import Assumption
from autograder.homework import Homework
from autograder.places import THE_COURSE
from course_utils.terminal.definitions import defined_names, imported_names, stub_names
from course_utils.terminal.magics import as_python, count_magics, other_language, split_measures
from course_utils.terminal.renamed import signatures

MAX_BYTES = 32 * 2**20
MAX_CELLS = 2_000
MAX_SOURCE = 2 * 2**20
MAX_PERCENT = 2**20  # jupytext is slow
MAX_PARSED = 100_000  # characters of a cell that is searched for names; longer ones are only run
MAX_ID = 80
KINDS = ("code", "markdown", "raw")
STUB = "NotImplementedError"  # stands in every stub
SKIPPED_TAGS = {"plot", "training"}
_MARK = re.compile(r"\s*#\s*(%%|In\s*\[|<\w+cell)")  # everything that jupytext takes for the beginning of a cell
_DEFINITION = re.compile(r"(?m)^(?:def|class)[ \t]+(\w{1,80})")
_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WORKING = (ast.Call, ast.Await, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class BadSubmission(Exception):
    """The file is no notebook that can be graded; the text tells the student why."""

    def __init__(self, told: str, status: str = "unreadable") -> None:
        super().__init__(told)
        self.status = status


@dataclass(frozen=True)
class RunCell:
    """One cell to run in the box; the names in `keep` count as defined here, whatever later cells do.

    With `stand_ins` they stand for what another box has by these names.
    """

    id: str
    source: str
    keep: tuple[str, ...] = ()
    stand_ins: bool = False


@dataclass(frozen=True)
class Submission:
    """A readable submission: its cells in order, a hash of its content, and what had to be assumed."""

    cells: tuple[RunCell, ...]
    digest: str
    texts: dict[str, str] = field(default_factory=dict)  # free-text answers by question, for a person to grade
    assumptions: tuple[Assumption, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, in sentences."""
        return tuple(map(str, self.assumptions))

    @property
    def answers(self) -> int:
        """How many names and texts are answered, stubs aside."""
        return sum(len(cell.keep) for cell in self.cells) + sum(map(bool, self.texts.values()))


@dataclass(frozen=True)
class _Read:
    """The cells of a file, and the homework that it says it is of."""

    cells: list[FoundCell]
    says: str = ""


def read_submission(path: Path, homework: Homework) -> Submission:
    """The cells of a submitted `.ipynb` or percent `.py`, given cells first; raises `BadSubmission`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadSubmission(
                f"The file is larger than {MAX_BYTES // 2**20} MB. Clear the outputs and hand it in again."
            )
        raw = path.read_bytes()
    except OSError as error:
        raise BadSubmission(f"The file cannot be read ({error.strerror}).") from None
    return parse_submission(raw, path.suffix.lower(), homework)


def parse_submission(raw: bytes, suffix: str, homework: Homework) -> Submission:
    """The same from the file's bytes."""
    read = read_cells(raw, suffix)
    if other := another_homework(read.cells, read.says, homework):
        told = f"This is a notebook of {other}, not of {homework.name}: hand in {homework.name}.ipynb."
        raise BadSubmission(told, "other homework")
    retyped = _retyped(read.cells, homework)
    found = [retyped.get(cell.position, cell) for cell in read.cells if cell.kind == "code" or cell.position in retyped]
    cells = [RunCell(f"given {i}", source) for i, source in enumerate(given_cells(homework), 1)]
    answers = answer_cells(found, homework, THE_COURSE.renamed_answers == "graded")
    for cell in found:
        keep = tuple(answers.keep.get(cell.position, ()))
        if keep or not (cell.grade_id.startswith(CHECK) or cell.tags & SKIPPED_TAGS):
            renamed = (f"\n\n{one.expected} = {one.meant}" for one in answers.aliases.get(cell.position, ()))
            cells.append(RunCell(cell.grade_id or f"cell {cell.position}", cell.source + "".join(renamed), keep))
        elif helpers_of(cell, homework):  # answers may use what the student has defined between plots
            left = RunCell(f"cell {cell.position}", cell.source)
            cells.append(definitions_only(left) or left)
    texts, assumptions = free_texts(read.cells, homework)
    slips = [_told_retyped(cell) for cell in read.cells if cell.position in retyped]
    assumed = (*answers.assumptions, *slips, *new_meanings(found, homework, answers.keep), *assumptions)
    return Submission(tuple(cells), hashlib.sha256(raw).hexdigest(), texts=texts, assumptions=assumed)


def _retyped(cells: Iterable[FoundCell], homework: Homework) -> dict[int, FoundCell]:
    """Answer cells that were turned into text by a slip of the keyboard, as the code that is in them."""
    names = {question.id: set(question.names) for question in homework.questions}
    retyped = {}
    for cell in cells:
        if cell.kind != "code" and cell.grade_id in names:
            code = _found("code", cell.position, cell.grade_id, list(cell.tags), cell.source, _Budget())
            if code.answered & names[cell.grade_id]:
                retyped[cell.position] = code
    return retyped


def _told_retyped(cell: FoundCell) -> Assumption:
    told = f"{cell.grade_id}: cell {cell.position} is a {cell.kind} cell; what stands in it was graded as code."
    return Assumption("cell", told, where=f"cell {cell.position}")


def read_cells(raw: bytes, suffix: str) -> _Read:
    """The cells of a file as they stand in it; raises `BadSubmission`."""
    return _percent_cells(raw) if suffix == ".py" else _notebook_cells(raw)


def reference_submission(homework: Homework, pastes: Mapping[str, str] = MappingProxyType({})) -> Submission:
    """The reference as a submission, what is given before the answers; each paste goes below its question's answer."""
    given = (RunCell(f"given {i}", source) for i, source in enumerate(given_cells(homework), 1))
    answers = (RunCell(q.id, f"{q.answer}\n\n{pastes.get(q.id, '')}", q.names) for q in homework.questions)
    return Submission((*given, *answers), digest="")


def with_stand_ins(submission: Submission, homework: Homework, question: str, parts: Iterable[str]) -> Submission:
    """The submission with stand-ins for the reference's answers to `parts` in place of its own, from `question`'s
    answer on."""
    names = set(homework.question(question).names)
    place = next((i for i, cell in enumerate(submission.cells) if names & set(cell.keep)), len(submission.cells))
    inserted = RunCell(f"given {', '.join(parts)}", "", part_names(homework, parts), stand_ins=True)
    return replace(submission, cells=(*submission.cells[:place], inserted, *submission.cells[place:]))


def part_names(homework: Homework, parts: Iterable[str]) -> tuple[str, ...]:
    """What the answers to these questions define."""
    return tuple(name for part in parts for name in homework.question(part).names)


def parts_submission(homework: Homework, question: str) -> Submission:
    """What is given, and the reference's answers before `question`: what runs in the box with the parts."""
    ids = [each.id for each in homework.questions]
    earlier = set(ids[: ids.index(question)])
    cells = reference_submission(homework).cells
    return Submission(tuple(cell for cell in cells if cell.id in earlier or not cell.keep), digest="")


def given_cells(homework: Homework) -> list[str]:
    """The code that the course gives (imports, helpers): run first, so that losing it costs nobody a point."""
    return [
        cell.source
        for cell in homework.cells
        if cell.kind == "code"
        and "question" not in cell.metadata
        and not SKIPPED_TAGS & set(cell.metadata.get("tags", []))
    ]


def _notebook_cells(raw: bytes) -> _Read:
    if not raw.strip():
        raise BadSubmission("The file is empty. Save the notebook and hand it in again.", "empty")
    try:
        data = json.loads(raw.decode(json.detect_encoding(raw)), parse_constant=lambda name: None)
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise BadSubmission("The file is not a Jupyter notebook (not valid JSON). Save the notebook again.") from None
    cells = _listed_cells(data) if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise BadSubmission("The notebook has no list of cells: save it in Jupyter's current format (nbformat 4).")
    if len(cells) > MAX_CELLS:
        raise BadSubmission(f"The notebook has {len(cells)} cells; at most {MAX_CELLS} are graded.")
    found, budget = [], _Budget()
    for position, cell in enumerate(cells, 1):
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if isinstance(kind, str) and kind in KINDS:
            metadata = _dict(cell.get("metadata"))
            source = cell.get("source", cell.get("input", ""))
            if isinstance(source, list):
                source = "".join(line for line in source if isinstance(line, str))
            grade_id = _dict(metadata.get("nbgrader")).get("grade_id")
            found.append(_found(kind, position, grade_id, metadata.get("tags"), source, budget))
    says = _dict(_dict(data.get("metadata")).get("otter")).get("assignment_name")
    return _Read(found, says if isinstance(says, str) else "")


def _listed_cells(data: dict[str, Any]) -> Any:
    """The cells; until 2015 notebooks had them in worksheets."""
    sheets = data.get("worksheets")
    if "cells" in data or not isinstance(sheets, list) or not sheets:
        return data.get("cells")
    lists = [_dict(sheet).get("cells") for sheet in sheets]
    return [cell for cells in lists if isinstance(cells, list) for cell in cells]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _percent_cells(raw: bytes) -> _Read:
    text = raw[: MAX_PERCENT + 1].decode("utf-8-sig", "replace")
    if len(raw) > MAX_PERCENT or sum(_MARK.match(line) is not None for line in text.splitlines()) > MAX_CELLS:
        raise BadSubmission(f"The file has more than {MAX_PERCENT // 2**20} MB or {MAX_CELLS} cells.")
    if not text.startswith("# %%"):
        text = f"# %%\n{text}"  # then nothing on top is read as YAML, which can unfold without end
    import jupytext  # takes a while, and most hand in notebooks

    try:
        cells = jupytext.reads(text, fmt="py:percent").cells
    except Exception:  # whatever a parser makes of untrusted bytes, the student gets a sentence
        raise BadSubmission("The file is not Python text in percent format.") from None
    budget = _Budget()
    found = [
        _found(cell.cell_type, position, _percent_id(cell), cell.metadata.get("tags", []), cell.source, budget)
        for position, cell in enumerate(cells, 1)
        if cell.cell_type in KINDS
    ]
    return _Read(found)


def _percent_id(cell: Any) -> Any:
    if cell.cell_type == "code":
        return cell.metadata.get("question")
    return _dict(cell.metadata.get("nbgrader")).get("grade_id") or cell.metadata.get("explain")


@dataclass
class _Budget:
    """Characters that the judge reads of one submission; cells beyond them are run, but not searched for names."""

    parsed: int = 500_000
    transformed: int = 2_000_000  # by IPython, which reads a cell anew for every magic

    def take(self, field: str, amount: int) -> bool:
        left = getattr(self, field) - amount
        if left >= 0:
            setattr(self, field, left)
        return left >= 0


def _found(kind: str, position: int, grade_id: Any, tags: Any, source: Any, budget: _Budget) -> FoundCell:
    text = source if isinstance(source, str) else ""
    if len(text) > MAX_SOURCE:
        raise BadSubmission(f"Cell {position} is longer than {MAX_SOURCE // 2**20} MB.")
    text, tree, magic = _plain_python(text, budget) if kind == "code" else (text, ast.Module([], []), "")
    stubs = stub_names(tree.body) if STUB in text else set()
    return FoundCell(
        position=position,
        grade_id=_printable(grade_id[:MAX_ID]) if isinstance(grade_id, str) else "",
        tags={tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set(),
        source=text,
        kind=kind,
        answered=frozenset(defined_names(tree.body)) - stubs,
        stubs=frozenset(stubs),
        magic=magic,
        unread=frozenset(_DEFINITION.findall(source)) if magic else frozenset(),
        signatures={name: told for name, told in signatures(tree.body).items() if name not in stubs},
        imported=frozenset(imported_names(tree.body)),
        runs=bool(tree.body),
    )


def _plain_python(source: str, budget: _Budget) -> tuple[str, ast.Module, str]:
    """The cell as plain Python, what it parses to (nothing at worst), and the magic that makes it another language.

    What only measures (`%%time`, `%time f()`) is taken off its code; other magics and shell lines do nothing.
    """
    top, body = split_measures(source)
    tree = _parsed(body, budget)
    magics = count_magics(body) if tree is None else 0
    foreign = other_language(body) if magics else ""
    if magics and budget.take("transformed", magics * len(body)):
        try:
            body = as_python(body)
            tree = _parsed(body, budget)
        except Exception:  # the box reports the syntax error at its line
            tree = None
    tree = tree or ast.Module([], [])
    if "%%timeit" in top and not defined_names(tree.body):  # in Jupyter it leaves nothing behind, and takes its time
        body = ""
    return "\n" * top.count("\n") + body, tree, foreign


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _parsed(source: str, budget: _Budget) -> ast.Module | None:
    if len(source) > MAX_PARSED or not budget.take("parsed", len(source)):
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defines(cell: RunCell) -> tuple[str, ...]:
    """The answers of a cell, and the functions and classes that others may use."""
    tree = _parsed(cell.source, _Budget())
    return tuple(dict.fromkeys((*cell.keep, *(signatures(tree.body) if tree else ()))))


def definitions_only(cell: RunCell) -> RunCell | None:
    """The cell's imports, functions, classes, simple assignments and answers, each at its line; None if that is all.

    For a cell that cannot be run as a whole: what else stands in it, a slow demo perhaps, becomes `pass`.
    """
    tree = _parsed(cell.source, _Budget())
    left_out = [node for node in tree.body if not _only_defines(node, cell.keep)] if tree else []
    return _with(cell, dict.fromkeys(left_out, "pass")) if left_out else None


def with_soft_imports(cell: RunCell) -> RunCell | None:
    """The cell with imports that do nothing where there is no such module, each at its line; None without imports."""
    tree = _parsed(cell.source, _Budget())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)] if tree else []
    soft = {node: f"try:\n    {ast.unparse(node)}\nexcept ImportError:\n    pass" for node in imports}
    return _with(cell, {node: f"exec({code!r})" for node, code in soft.items()}) if imports else None


def _with(cell: RunCell, instead: Mapping[ast.stmt, str]) -> RunCell:
    """The cell with one line in place of each of these statements; all others keep their lines."""
    lines = re.sub(r"\r\n?", "\n", cell.source).encode().split(b"\n")  # positions in a tree count bytes
    for node, code in reversed(list(instead.items())):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        if first == last:
            lines[first] = before + code.encode() + after
        else:
            lines[first : last + 1] = [before, *[b""] * (last - first - 1), code.encode() + after]
    return replace(cell, source=b"\n".join(lines).decode())


def _only_defines(node: ast.stmt, answers: Iterable[str]) -> bool:
    """Whether a statement gives names to things without working for them; an answer may be worked for."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return isinstance(node, _DEFINING)
    if set(defined_names([node])) & set(answers):
        return True
    parts: list[ast.AST] = [node]
    while parts:
        part = parts.pop()
        if isinstance(part, _WORKING):
            return False
        if not isinstance(part, ast.Lambda):
            parts += ast.iter_child_nodes(part)
    return True
