"""What a question's text asks for, and which checks keep it.

A sentence that a program can check bears a mark at its end, `{=empty-slice}`: a public check keeps it, and says so in a
comment under its docstring, `# keeps: empty-slice`. `{~huge-scores}`: hidden on purpose, and the text says what hidden
checks also try. `{-}`: it only sounds like a requirement. Marks are taken out where the source is read.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.errors import Problem
from autograder.percent import PercentCell

KEY = r"[a-z0-9]+(?:-[a-z0-9]+)*"
MARK = re.compile(rf"(?<![\w^\\])(?:\{{([=~])({KEY})\}}|\{{(-)\}})")  # no brace of a formula
NEARLY = re.compile(r"\{[=~] ?[A-Za-z][\w ,-]*\}")  # what was meant to be a mark
FORMULA = re.compile(r"\$[^$]*\$")
KEEPS = re.compile(r"#\s*keeps:\s*(.*)", re.IGNORECASE)
TELLS_HIDDEN = re.compile(r"\bhidden\s+(?:checks?|ones|tests?)\b", re.IGNORECASE)
LIKE = re.compile(r"\bValueError\b|\bmust\b|\bnever\b|\bas before\b", re.IGNORECASE)
MUST_LIST = re.compile(r"\bmust\b.*:\s*$", re.IGNORECASE | re.DOTALL)
QUIET = re.compile(r"`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)", re.DOTALL)  # full stops in here end no sentence
OTHERS = {"question", "explain", "help", "card", "contents"}  # cells that are no part of a question's text
SENTENCE = re.compile(r"(?<=[.!?])[)*_\"]*\s+")


@dataclass(frozen=True)
class Requirement:
    """One thing that a text asks for; `hidden`: no public check looks at it, on purpose."""

    question: str
    key: str
    hidden: bool
    sentence: str
    line: int


@dataclass(frozen=True)
class Keeping:
    """A `# keeps:` of a check."""

    check: str  # the function's name; empty where the comment stands outside of one
    key: str
    line: int


@dataclass(frozen=True)
class Asking:
    """The requirements of one question, the sentences that look like more of them, and its whole text."""

    requirements: tuple[Requirement, ...] = ()
    unmarked: tuple[tuple[int, str], ...] = ()  # line and sentence
    text: str = ""
    line: int = 0


def read_requirements(cells: Sequence[PercentCell]) -> dict[str, Asking]:
    """What each question asks for, by its id: from its text, the cells up to its answer, and its docstrings."""
    found: dict[str, Asking] = {}
    for question, parts in _texts(cells).items():
        units = [unit for cell in parts for unit in _units(cell)]
        marked = tuple(
            Requirement(question, mark[2], mark[1] == "~", unit.plain, unit.line)
            for unit in units
            for mark in unit.marks
            if mark[2]
        )
        unmarked = tuple((unit.line, unit.plain) for unit in units if unit.like and not unit.marks)
        text = "\n".join(without_marks(cell.source) for cell in parts)
        found[question] = Asking(marked, unmarked, text, parts[0].line)
    return found


def without_marks(text: str) -> str:
    """A text as students read it; a line that held nothing but marks goes with them."""
    if "{" not in text:
        return text
    lines = [(line, re.sub(rf"[ \t]*(?:{MARK.pattern})", "", line)) for line in text.split("\n")]
    return "\n".join(after for before, after in lines if after.strip() or not MARK.search(before))


def unmarked_cell(cell: PercentCell) -> PercentCell:
    """A cell without its marks: a text everywhere, an answer in its docstrings only, for `{~x}` is Python too."""
    if cell.kind == "markdown":
        source = without_marks(cell.source)
    elif "question" in cell.metadata:
        lines = cell.source.split("\n")
        for first, last in sorted(_docstrings(cell.source), reverse=True):
            lines[first - 1 : last] = without_marks("\n".join(lines[first - 1 : last])).split("\n")
        source = "\n".join(lines)
    else:
        return cell
    return cell if source == cell.source else replace(cell, source=source)


def mark_problems(path: Path, cells: Sequence[PercentCell], name: str) -> Iterator[Problem]:
    """Marks that stand where nobody looks for them, or that are none."""
    owned = {id(cell) for parts in _texts(cells).values() for cell in parts}
    for cell in cells:
        if cell.kind != "markdown":
            continue
        for line, text in enumerate(cell.source.split("\n"), cell.line + 1):
            if found := NEARLY.search(MARK.sub("", FORMULA.sub("", text))):
                what = f"`{found[0]}` is no mark of a requirement."
                remedy = "Write a key of small letters and hyphens, a space before it: ` {=empty-slice}`."
                yield Problem(path, line, what, remedy, name)
            if id(cell) not in owned and (mark := MARK.search(text)):
                what = f"`{mark[0]}` stands outside the text of a question with checks."
                yield Problem(path, line, what, "Move it to the sentence of that question, or take it out.", name)


def kept_in(path: Path) -> list[Keeping]:
    """Every `# keeps:` of a file of checks, with the check in which it stands; none in a file that is not Python."""
    if not path.is_file():
        return []
    source = path.read_text(encoding="utf-8", errors="replace")
    if "keeps:" not in source.lower():
        return []
    try:
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, tokenize.TokenError):
        return []
    kept = []
    for token in tokens:
        if token.type == tokenize.COMMENT and (said := KEEPS.fullmatch(token.string.strip())):
            line = token.start[0]
            inside = (f.name for f in functions if f.lineno <= line <= (f.end_lineno or 0))
            check = next((name for name in inside if name.startswith("test_")), "")
            kept += [Keeping(check, key, line) for key in re.split(r"[,\s]+", said[1].strip(" .")) if key]
    return kept


def requirement_problems(
    source: Path, asked: Mapping[str, Asking], public: Mapping[str, Path], hidden: Mapping[str, Path]
) -> Iterator[Problem]:
    """Requirements that no check keeps, checks that keep what nobody asked for, keys that stand twice, silent marks.

    `public` and `hidden` are the files of checks by question.
    """
    for question, told in asked.items():
        seen: dict[str, int] = {}
        for required in told.requirements:
            if required.key in seen:
                what = f"{question} has the key `{required.key}` twice (first on line {seen[required.key]})."
                yield Problem(source, required.line, what, "Give each requirement a key of its own.", question)
            seen.setdefault(required.key, required.line)
        kept = kept_in(public[question])
        keeping = {one.key for one in kept if one.check}
        for required in told.requirements:
            if not required.hidden and required.key not in keeping:
                what = f"no public check of {question} keeps `{{={required.key}}}`: {_brief(required.sentence)}"
                remedy = f"Write one with `# keeps: {required.key}` under its docstring, or mark it with `~`."
                yield Problem(source, required.line, what, remedy, question)
        on_purpose = [required for required in told.requirements if required.hidden]
        if on_purpose and not TELLS_HIDDEN.search(told.text):
            what = f"`{{~{on_purpose[0].key}}}` is hidden on purpose, and the text of {question} does not say so."
            remedy = "End the text with a sentence on what hidden checks also try."
            yield Problem(source, on_purpose[0].line, what, remedy, question)
        for path, ones in ((public[question], kept), (hidden[question], kept_in(hidden[question]))):
            for one in ones:
                if not one.check:
                    what = f"`# keeps: {one.key}` stands in no check."
                    yield Problem(path, one.line, what, "Put it right under the docstring of a `test_...`.", question)
                elif one.key not in seen:
                    what = f"`{one.check}` keeps `{one.key}`, which the text of {question} does not ask for."
                    remedy = f"Correct the key, or mark the sentence with `{{={one.key}}}`."
                    yield Problem(path, one.line, what, remedy, question)


def unmarked_problems(source: Path, asked: Mapping[str, Asking]) -> Iterator[Problem]:
    """Sentences that sound like requirements and bear no mark."""
    for question, told in asked.items():
        for line, sentence in told.unmarked:
            what = f"{question} asks for something without a mark: {_brief(sentence)}"
            remedy = "Mark it `{=key}` or `{~key}`, or `{-}` where no program can check it."
            yield Problem(source, line, what, remedy, question)


@dataclass(frozen=True)
class _Unit:
    """A sentence, or a bullet of a list of what must be, with its marks."""

    line: int
    plain: str
    marks: tuple[re.Match[str], ...]
    like: bool


def _texts(cells: Sequence[PercentCell]) -> dict[str, list[PercentCell]]:
    """The cells of each question that ask: its text, what stands between that and its answer, and the answer cell."""
    found: dict[str, list[PercentCell]] = {}
    answers = ((i, cell) for i, cell in enumerate(cells) if cell.kind == "code" and "question" in cell.metadata)
    answered = {str(cell.metadata["question"]): i for i, cell in answers}
    for i, cell in enumerate(cells):
        question = str(cell.metadata.get("question", ""))
        if cell.kind == "markdown" and question in answered and question not in found:
            between = cells[i + 1 : answered[question]]
            plain = [part for part in between if part.kind == "markdown" and not OTHERS & part.metadata.keys()]
            found[question] = [cell, *plain, cells[answered[question]]]
    return found


def _units(cell: PercentCell) -> Iterator[_Unit]:
    if cell.kind == "code":
        lines = cell.source.split("\n")
        for first, last in _docstrings(cell.source):
            text = "\n".join(line.strip() for line in lines[first - 1 : last])
            yield from (replace(unit, like=False) for unit in _sentences(text, cell.line + first))
        return
    must = False
    for line, block in _blocks(cell.source, cell.line + 1):
        bullet = block.lstrip().startswith(("- ", "* ")) or re.match(r"\s*\d+\. ", block) is not None
        if bullet and must:
            marks = tuple(MARK.finditer(block))
            yield _Unit(line, _plain(block), marks, like=True)
            continue
        must = bool(MUST_LIST.search(MARK.sub("", block)))
        units = list(_sentences(block, line))
        if must and units:  # "It must:", whose bullets are the requirements
            units[-1] = replace(units[-1], like=False)
        yield from units


def _blocks(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Paragraphs and bullets with their lines; code in fences, headings and tables are left out."""
    block: list[str] = []
    start, fenced = line, False
    for number, written in enumerate([*text.split("\n"), ""], line):
        fence = written.lstrip().startswith("```")
        begins = re.match(r"\s*(?:[-*] |\d+\. )", written)
        ends = not written.strip() or fence or fenced or begins or written.startswith(("#", "|"))
        if ends and block:
            yield start, "\n".join(block)
            block = []
        fenced ^= fence
        if written.strip() and not fence and not fenced and not written.startswith(("#", "|")):
            if not block:
                start = number
            block.append(written)


def _sentences(text: str, line: int) -> Iterator[_Unit]:
    """The sentences of a paragraph; a mark belongs to the sentence before it, also where its full stop comes after."""
    masked = QUIET.sub(lambda found: re.sub(r"[.!?]", "·", found[0]), text)
    masked = re.sub(rf"((?:[ \t]*(?:{MARK.pattern}))+)([.!?]+)", _stop_first, masked)
    ends = [*SENTENCE.finditer(masked), *re.finditer(rf"(?:{MARK.pattern})\s+", masked)]
    bounds = sorted({found.end() for found in ends if not MARK.match(masked, found.end())} | {len(masked)})
    for start, end in zip([0, *bounds], bounds, strict=False):
        part = masked[start:end]
        if part.strip():
            above = start + len(part) - len(part.lstrip())
            bare = MARK.sub("", part)
            yield _Unit(
                line + masked[:above].count("\n"),
                _plain(text[start:end]),
                tuple(MARK.finditer(part)),
                like=bool(LIKE.search(bare)),
            )


def _stop_first(found: re.Match[str]) -> str:
    """`{=key}.` as `. {=key}`: of the same length, so that places stay."""
    return found[found.lastindex or 0] + found[1]


def _docstrings(source: str) -> list[tuple[int, int]]:
    """First and last line of each docstring in a piece of Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    firsts = (body[0] for body in bodies if body)
    return [
        (first.lineno, first.end_lineno or first.lineno)
        for first in firsts
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    ]


def _plain(text: str) -> str:
    return " ".join(MARK.sub("", text).split()).removeprefix("- ")


def _brief(sentence: str) -> str:
    text = sentence if len(sentence) <= 90 else f"{sentence[:87].rstrip()}..."
    return text if text.endswith((".", "?", "!", ":", ";")) else f"{text}."


def table(
    asked: Iterable[Requirement], public: Sequence[Keeping], hidden: Sequence[Keeping]
) -> Iterator[tuple[str, str, str]]:
    """A row per requirement: its mark, the public checks that keep it, the hidden ones that say so."""
    for required in asked:
        by = ", ".join(dict.fromkeys(one.check for one in public if one.key == required.key and one.check))
        also = ", ".join(dict.fromkeys(one.check for one in hidden if one.key == required.key and one.check))
        if required.hidden:
            also = also or "on purpose"
        yield f"{'~' if required.hidden else '='}{required.key}", by or "-", also or "-"
