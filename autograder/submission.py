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
from itertools import islice, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from autograder.homework import Homework, without_markers
from course_utils.definitions import defined_names, stub_names
from course_utils.magics import as_python, count_magics, other_language, split_measures

MAX_BYTES = 32 * 2**20
MAX_CELLS = 2_000
MAX_SOURCE = 2 * 2**20
MAX_PERCENT = 2**20  # jupytext is slow
MAX_PARSED = 100_000  # characters of a cell that is searched for names; longer ones are only run
MAX_ID = 80
MAX_TEXT = 20_000  # characters kept of a free-text answer
TEXT_STUB = "YOUR ANSWER HERE"  # nbgrader's
STUB = "NotImplementedError"  # stands in every stub
SKIPPED_TAGS = {"plot", "training"}
_MARK = re.compile(r"\s*#\s*(%%|In\s*\[|<\w+cell)")  # everything that jupytext takes for the beginning of a cell
_DEFINITION = re.compile(r"(?m)^(?:def|class)[ \t]+(\w{1,80})")
_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WORKING = (ast.Call, ast.Await, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class BadSubmission(Exception):
    """The file is no notebook that can be graded; the text tells the student why."""


@dataclass(frozen=True)
class RunCell:
    """One cell to run in the box; the names in `keep` count as defined here, whatever later cells do."""

    id: str
    source: str
    keep: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submission:
    """A readable submission: its cells in order, a hash of its content, and what had to be assumed."""

    cells: tuple[RunCell, ...]
    digest: str
    notes: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)  # free-text answers by question, for a person to grade


@dataclass
class _Found:
    """A code or markdown cell as it stands in the file."""

    position: int
    grade_id: str
    tags: set[str]
    source: str
    kind: str = "code"
    answered: frozenset[str] = frozenset()  # the names it defines, stubs aside
    magic: str = ""  # `%%bash` and the like on top: then it is no Python
    unread: frozenset[str] = frozenset()  # the names that stand below such a magic


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
    return parse_submission(raw, path.suffix, homework)


def parse_submission(raw: bytes, suffix: str, homework: Homework) -> Submission:
    """The same from the file's bytes."""
    everything = _percent_cells(raw) if suffix == ".py" else _notebook_cells(raw)
    found = [cell for cell in everything if cell.kind == "code"]
    notes: list[str] = []
    cells = [RunCell(f"given {i}", source) for i, source in enumerate(given_cells(homework), 1)]
    answers = _answer_cells(found, homework, notes)
    for cell in found:
        keep = tuple(answers.get(cell.position, ()))
        if keep or not (cell.grade_id.startswith("test_") or cell.tags & SKIPPED_TAGS):
            cells.append(RunCell(cell.grade_id or f"cell {cell.position}", cell.source, keep))
    texts = _free_texts([cell for cell in everything if cell.kind == "markdown"], homework, notes)
    return Submission(tuple(cells), hashlib.sha256(raw).hexdigest(), tuple(notes), texts)


def reference_submission(homework: Homework, pastes: Mapping[str, str] = MappingProxyType({})) -> Submission:
    """The reference as a submission, what is given before the answers; each paste goes below its question's answer."""
    given = (RunCell(f"given {i}", source) for i, source in enumerate(given_cells(homework), 1))
    answers = (RunCell(q.id, f"{q.answer}\n\n{pastes.get(q.id, '')}", q.names) for q in homework.questions)
    return Submission((*given, *answers), digest="")


def with_reference_parts(submission: Submission, homework: Homework, question: str, parts: Iterable[str]) -> Submission:
    """The submission with the reference's answers to `parts` in place of its own, from `question`'s answer on."""
    names = set(homework.question(question).names)
    place = next((i for i, cell in enumerate(submission.cells) if names & set(cell.keep)), len(submission.cells))
    answers = [homework.question(part) for part in parts]
    inserted = tuple(RunCell(f"given {answer.id}", without_markers(answer.answer), answer.names) for answer in answers)
    return replace(submission, cells=(*submission.cells[:place], *inserted, *submission.cells[place:]))


def given_cells(homework: Homework) -> list[str]:
    """The code that the course gives (imports, helpers): run first, so that losing it costs nobody a point."""
    return [
        cell.source
        for cell in homework.cells
        if cell.kind == "code"
        and "question" not in cell.metadata
        and not SKIPPED_TAGS & set(cell.metadata.get("tags", []))
    ]


def _notebook_cells(raw: bytes) -> list[_Found]:
    try:
        data = json.loads(raw.decode("utf-8-sig"), parse_constant=lambda name: None)
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise BadSubmission("The file is not a Jupyter notebook (not valid JSON). Save the notebook again.") from None
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise BadSubmission("The notebook has no list of cells: save it in Jupyter's current format (nbformat 4).")
    if len(cells) > MAX_CELLS:
        raise BadSubmission(f"The notebook has {len(cells)} cells; at most {MAX_CELLS} are graded.")
    found, budget = [], _Budget()
    for position, cell in enumerate(cells, 1):
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if isinstance(kind, str) and kind in ("code", "markdown"):
            metadata = _dict(cell.get("metadata"))
            source = cell.get("source", "")
            if isinstance(source, list):
                source = "".join(line for line in source if isinstance(line, str))
            grade_id = _dict(metadata.get("nbgrader")).get("grade_id")
            found.append(_found(kind, position, grade_id, metadata.get("tags"), source, budget))
    return found


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _percent_cells(raw: bytes) -> list[_Found]:
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
    return [
        _found(cell.cell_type, position, _percent_id(cell), cell.metadata.get("tags", []), cell.source, budget)
        for position, cell in enumerate(cells, 1)
        if cell.cell_type in ("code", "markdown")
    ]


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


def _found(kind: str, position: int, grade_id: Any, tags: Any, source: Any, budget: _Budget) -> _Found:
    text = source if isinstance(source, str) else ""
    if len(text) > MAX_SOURCE:
        raise BadSubmission(f"Cell {position} is longer than {MAX_SOURCE // 2**20} MB.")
    text, tree, magic = _plain_python(text, budget) if kind == "code" else (text, ast.Module([], []), "")
    return _Found(
        position=position,
        grade_id=_printable(grade_id[:MAX_ID]) if isinstance(grade_id, str) else "",
        tags={tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set(),
        source=text,
        kind=kind,
        answered=frozenset(defined_names(tree.body)) - (stub_names(tree.body) if STUB in text else set()),
        magic=magic,
        unread=frozenset(_DEFINITION.findall(source)) if magic else frozenset(),
    )


def _free_texts(found: list[_Found], homework: Homework, notes: list[str]) -> dict[str, str]:
    """The free-text answers: by grade id, else the text below the question's heading; "" where nothing is written."""
    texts = {}
    for asked in homework.explanations:
        cells = [cell for cell in found if cell.grade_id == asked.id]
        if not cells:
            heading = asked.prompt.partition("\n")[0]
            below = (after for cell, after in pairwise(found) if cell.source.startswith(heading))
            cells = list(islice(below, 1))
            if cells:
                notes.append(f"{asked.id}: the answer was taken from cell {cells[0].position}, below the question.")
            else:
                notes.append(f"{asked.id}: there is no cell for the answer in your notebook.")
        written = "\n\n".join(cell.source for cell in cells if cell.source.strip() != TEXT_STUB)
        text = "\n".join(written.splitlines())  # whatever breaks a line here or there breaks it everywhere
        if len(text) > MAX_TEXT:
            notes.append(f"{asked.id}: the answer is longer than {MAX_TEXT} characters; the rest is not read.")
        texts[asked.id] = text[:MAX_TEXT].encode("utf-8", "replace").decode().strip()
    return texts


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


def definitions_only(cell: RunCell) -> RunCell | None:
    """The cell's imports, functions, classes, simple assignments and answers, each at its line; None if that is all.

    For a cell that cannot be run as a whole: what else stands in it, a slow demo perhaps, becomes `pass`.
    """
    tree = _parsed(cell.source, _Budget())
    left_out = [node for node in tree.body if not _only_defines(node, cell.keep)] if tree else []
    if not left_out:
        return None
    lines = re.sub(r"\r\n?", "\n", cell.source).encode().split(b"\n")  # positions in a tree count bytes
    for node in reversed(left_out):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        if first == last:
            lines[first] = before + b"pass" + after
        else:
            lines[first : last + 1] = [before, *[b""] * (last - first - 1), b"pass" + after]
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


def _answer_cells(found: list[_Found], homework: Homework, notes: list[str]) -> dict[int, list[str]]:
    """Which names count as defined in which cell: by grade id, else by the names it defines; {position: names}."""
    answers: dict[int, list[str]] = {}
    for question in homework.questions:
        labelled = [cell for cell in found if cell.grade_id == question.id]
        if len(labelled) > 1:
            chosen = next((cell for cell in labelled if set(question.names) & cell.answered), labelled[0])
            places = ", ".join(str(cell.position) for cell in labelled)
            notes.append(f"{question.id}: cells {places} carry this question's id; cell {chosen.position} was graded.")
            labelled = [chosen]
        for cell in found:
            if cell.magic and (cell in labelled or cell.unread & set(question.names)):
                notes.append(
                    f"{question.id}: cell {cell.position} begins with `{cell.magic}` and was not run as Python: "
                    "delete that line to have the cell graded."
                )
        for name in question.names:
            home = next((cell for cell in labelled if name in cell.answered), None)
            if home is None:
                home = next((cell for cell in found if name in cell.answered and cell.grade_id != question.id), None)
                if home is not None:
                    notes.append(
                        f"{question.id}: `{name}` was taken from cell {home.position}, outside the answer cell."
                    )
            if home is not None:
                answers.setdefault(home.position, []).append(name)
    return answers
