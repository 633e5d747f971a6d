"""A homework as its authors wrote it: the source's cells, its questions, and everything wrong with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.box.limits import Limits
from autograder.catalogue import Entry, read_catalogue
from autograder.errors import BadInput, BadSource, Problem
from autograder.numbers import number_problems, numbered, numbers, spelt
from autograder.percent import PercentCell, read_percent
from autograder.places import SOLUTIONS, SUITES
from autograder.requirements import Asking, mark_problems, read_requirements, unmarked_cell
from autograder.suite_rules import public_problems, todo_problems
from course_utils.terminal.definitions import defined_names

NAME = re.compile(r"hw(\d+)_[a-z0-9_]+")
QUESTION_ID = re.compile(r"q(\d+)_\d+")
HEADING = re.compile(r"^#+ ([\d.]+ )?(.+)$", re.MULTILINE)
BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"
METADATA = {"question", "explain", "points", "minutes", "difficulty", "limits", "uses", "help", "card"}
METADATA |= {"contents", "given", "summary", "tags", "bonus", "sources", "told"}
LADDER = ("symptom", "hint", "pseudo-code")
TOTAL_POINTS = 100
LEAST_MISTAKES, LEAST_VARIANTS = 4, 3


@dataclass(frozen=True)
class Question:
    """One question: what it is worth, and the names its answer must define."""

    id: str
    points: float
    minutes: int
    difficulty: int  # 1 to 5
    names: tuple[str, ...]
    answer: str  # the reference's answer cell
    line: int
    limits: dict[str, float]  # of the box, where the usual ones do not suit
    uses: tuple[str, ...]  # earlier questions on whose names an answer may rely
    bonus: bool = False  # its points come on top of the homework's


@dataclass(frozen=True)
class Explanation:
    """A free-text question, graded by a person."""

    id: str
    points: float
    minutes: int
    difficulty: int  # 1 to 5
    prompt: str
    answer: str  # the model answer and the rubric
    line: int
    bonus: bool = False  # its points come on top of the homework's


@dataclass(frozen=True, eq=False)
class Homework:
    """One homework: `solutions/<name>.py` and, beside it, `autograder/suites/<name>/`."""

    name: str
    source: Path
    suite: Path
    cells: tuple[PercentCell, ...]
    questions: tuple[Question, ...]  # that the judge grades
    explanations: tuple[Explanation, ...] = ()  # that a person grades
    unfinished: tuple[Problem, ...] = ()  # what a draft still lacks
    warnings: tuple[Problem, ...] = ()  # what would be better, and hinders nothing
    asked: Mapping[str, Asking] = field(default_factory=dict)  # what each question's text asks for, by its marks

    @cached_property
    def graded(self) -> tuple[Question | Explanation, ...]:
        """Everything that earns points, in the order of the notebook."""
        return tuple(sorted((*self.questions, *self.explanations), key=lambda asked: asked.line))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that all answers define."""
        return tuple(name for question in self.questions for name in question.names)

    @property
    def points(self) -> float:
        """What the whole homework is worth; bonus questions earn points beyond that."""
        return sum(asked.points for asked in self.graded if not asked.bonus)

    @property
    def titles(self) -> dict[str, str]:
        """The heading of each question, without its number."""
        return {asked: title for asked, (_, title) in self._headings.items()}

    @property
    def sections(self) -> dict[str, str]:
        """The heading of each question with its number: "3.8 The encoder layer", beside ids that keep to no order."""
        return {asked: f"{number}{title}" for asked, (number, title) in self._headings.items()}

    @cached_property
    def _headings(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for cell in self.cells:
            asked = cell.metadata.get("question") or cell.metadata.get("explain")
            if cell.kind == "markdown" and asked and (heading := HEADING.search(cell.source)):
                found.setdefault(str(asked), (heading[1] or "", heading[2].strip()))
        return found

    def question(self, question_id: str) -> Question:
        """The question of that id."""
        return next(question for question in self.questions if question.id == question_id)

    def public_file(self, question_id: str) -> Path:
        """The checks that students get."""
        return self.suite / "public" / f"test_{question_id}.py"

    def hidden_file(self, question_id: str) -> Path:
        """The checks that only staff has."""
        return self.suite / "hidden" / f"test_{question_id}.py"

    def has_checks(self, question_id: str) -> bool:
        """Whether there is anything yet to hold an answer against; a draft may have nothing."""
        return self.public_file(question_id).is_file() or self.hidden_file(question_id).is_file()

    @cached_property
    def mistakes(self) -> Mapping[str, list[Entry]]:
        """The known wrong answers, by question."""
        return _Catalogues(self, "mistakes")

    @cached_property
    def variants(self) -> Mapping[str, list[Entry]]:
        """The known right answers written another way, by question."""
        return _Catalogues(self, "variants")

    def catalogue(self, kind: str, question: Question) -> list[Entry]:
        """The "mistakes" or "variants" of one question, none without a file; raises `BadSource` with every problem."""
        file = self.suite / kind / f"{question.id}.py"
        return read_catalogue(file, question.id, without_markers(question.answer)) if file.is_file() else []


class _Catalogues(Mapping[str, list[Entry]]):
    """The catalogues of a homework's questions, each read when first asked for."""

    def __init__(self, homework: Homework, kind: str) -> None:
        self._homework, self._kind = homework, kind
        self._read: dict[str, list[Entry]] = {}

    def __getitem__(self, question: str) -> list[Entry]:
        if question not in set(self):
            raise KeyError(question)
        if question not in self._read:
            self._read[question] = self._homework.catalogue(self._kind, self._homework.question(question))
        return self._read[question]

    def __iter__(self) -> Iterator[str]:
        return iter(question.id for question in self._homework.questions)

    def __len__(self) -> int:
        return len(self._homework.questions)


def homework_names() -> list[str]:
    """Every homework that has a source, in order."""
    return sorted(path.stem for path in SOLUTIONS.glob("hw*.py"))


def read_homework(
    name: str, solutions: Path = SOLUTIONS, suites: Path = SUITES, draft: bool = False, question: str | None = None
) -> Homework:
    """Read and check one homework; raises `BadSource` with every problem found.

    A `draft` may be unfinished; `question`: what the others lack, and their suites, are not looked at.
    """
    if not NAME.fullmatch(name) or not (solutions / f"{name}.py").is_file():
        known = ", ".join(sorted(path.stem for path in solutions.glob("hw*.py"))) or "none"
        raise BadInput(f"There is no homework `{name}`. Known homeworks: {known}.")
    source = solutions / f"{name}.py"
    cells = read_percent(source)
    problems = [*_cell_problems(source, cells, name), *_question_problems(source, cells, name)]
    order = numbers(solutions)
    problems += [*number_problems(source, name, cells, order), *mark_problems(source, cells, name)]
    asked = read_requirements(cells)
    cells = [unmarked_cell(cell) for cell in cells]
    cells = [
        _filled(source, cell, problems, order) if "given" in cell.metadata else numbered(cell, order) for cell in cells
    ]
    _refuse(problems, draft, question)
    homework = Homework(
        name,
        source,
        suites / name,
        tuple(cells),
        tuple(_questions(cells)),
        tuple(_explanations(cells)),
        asked=asked,
    )
    if question is not None:
        _refuse_unknown(homework, question)
    problems += _suite_problems(homework, question)
    _refuse(problems, draft, question)
    unfinished = (p for p in problems if p.unfinished and question in (None, p.unfinished))
    return replace(homework, unfinished=tuple(sorted(unfinished)), warnings=tuple(_scarce(homework, question)))


def _refuse(problems: list[Problem], draft: bool, question: str | None) -> None:
    """Raise what hinders: everything, but not what a draft or another question than the one at hand still lacks."""
    hindering = [p for p in problems if not p.unfinished or not draft and question in (None, p.unfinished)]
    if hindering:
        raise BadSource(hindering)


def _refuse_unknown(homework: Homework, question: str) -> None:
    judged = [known.id for known in homework.questions]
    if question in judged:
        return
    if question in (asked.id for asked in homework.explanations):
        raise BadInput(f"{homework.name} asks {question} in words, which a person grades: it has no suite.")
    raise BadInput(f"{homework.name} has no question {question}. It has {', '.join(judged) or 'none yet'}.")


def _questions(cells: list[PercentCell]) -> Iterator[Question]:
    for cell in _answer_cells(cells):
        meta = cell.metadata
        yield Question(
            id=meta["question"],
            points=meta["points"],
            minutes=meta["minutes"],
            difficulty=meta["difficulty"],
            names=defined_names(ast.parse(cell.source).body),
            answer=cell.source,
            line=cell.line,
            limits=meta.get("limits", {}),
            uses=tuple(meta.get("uses", ())),
            bonus=meta.get("bonus", False),
        )


def _explanations(cells: list[PercentCell]) -> Iterator[Explanation]:
    for cell in cells:
        if "explain" in cell.metadata:
            meta = cell.metadata
            prompt, answer = prompt_and_answer(cell.source)
            yield Explanation(
                id=meta["explain"],
                points=meta["points"],
                minutes=meta["minutes"],
                difficulty=meta["difficulty"],
                prompt=prompt,
                answer=answer,
                line=cell.line,
                bonus=meta.get("bonus", False),
            )


def prompt_and_answer(source: str) -> tuple[str, str]:
    """The two parts of a free-text cell: what is asked, and what the solution region holds."""
    lines = source.split("\n")
    begin, end = (next(i for i, line in enumerate(lines) if mark in line) for mark in (BEGIN, END))
    return "\n".join(lines[:begin]).strip(), "\n".join(lines[begin + 1 : end]).strip()


def _answer_cells(cells: list[PercentCell]) -> list[PercentCell]:
    return [cell for cell in cells if cell.kind == "code" and "question" in cell.metadata]


def question_of(cell: PercentCell) -> str:
    """The question that a cell belongs to: its text, its answer or its help; empty where it belongs to none."""
    return str(next((cell.metadata[key] for key in ("question", "explain", "help") if key in cell.metadata), ""))


def _cell_problems(path: Path, cells: list[PercentCell], name: str) -> Iterator[Problem]:
    """What is wrong inside single cells: metadata, Python, solution regions, help ladders."""
    for cell in cells:
        for key in sorted(set(cell.metadata) - METADATA):
            yield Problem(path, cell.line, f"unknown cell metadata `{key}`.", f"Use one of {sorted(METADATA)}.")
        if cell.kind == "code":
            yield from _python_problems(path, cell)
        yield from _region_problems(path, cell)
        yield from todo_problems(path, cell.source, question_of(cell) or name, cell.line)
        yield from todo_problems(path, str(cell.metadata.get("summary", "")), name, cell.line - 1)
        if "explain" in cell.metadata:
            yield from _explanation_problems(path, cell)
        if "help" in cell.metadata:
            yield from _ladder_problems(path, cell)


def _filled(path: Path, cell: PercentCell, problems: list[Problem], order: Mapping[str, str]) -> PercentCell:
    """A `given="hwN_topic qN_1 qN_7"` cell, its body replaced by the reference's answers to those questions."""
    name, *wanted = str(cell.metadata["given"]).split()
    source = path.parent / f"{name}.py"
    if not source.is_file() or not wanted:
        what = f"`given` names no homework and its questions: {cell.metadata['given']!r}."
        problems.append(Problem(path, cell.line, what, 'Write `given="hwN_topic qN_1 qN_7"`.'))
        return cell
    cells = map(unmarked_cell, _answer_cells(read_percent(source)))
    answers = {str(answer.metadata["question"]): spelt(answer.source, order) for answer in cells}
    for question in set(wanted) - set(answers):
        what = f"{name} has no question {question} that could be given here."
        problems.append(Problem(path, cell.line, what, "Correct the id."))
    return replace(cell, source="\n\n\n".join(without_markers(answers.get(question, "")) for question in wanted))


def without_markers(source: str) -> str:
    """Code or text without the lines that mark its solution regions."""
    lines = source.split("\n")
    return "\n".join(line for line in lines if not re.fullmatch(rf"\s*(# )?({BEGIN}|{END})", line))


def _python_problems(path: Path, cell: PercentCell) -> Iterator[Problem]:
    try:
        ast.parse(cell.source)
    except SyntaxError as error:
        line = cell.line + (error.lineno or 1)
        yield Problem(path, line, f"not valid Python ({error.msg}).", "Mend the code of this cell.")


def _region_problems(path: Path, cell: PercentCell) -> Iterator[Problem]:
    """Solution regions must be closed, flat, and inside an answer cell or a free-text question."""
    opened: int | None = None
    answer = ("question" if cell.kind == "code" else "explain") in cell.metadata
    regions = 0
    for number, text in enumerate(cell.source.splitlines(), cell.line + 1):
        if BEGIN in text:
            regions += 1
            if opened is not None:
                yield Problem(
                    path, number, f"`# {BEGIN}` inside the region of line {opened}.", f"Close that one with `# {END}`."
                )
            if not answer:
                yield Problem(
                    path,
                    number,
                    "a solution stands outside a question.",
                    'Give its cell a header such as `# %% question="q1_1" points=5 minutes=10 difficulty=2`.',
                )
            opened = number
        elif END in text:
            if opened is None:
                yield Problem(
                    path, number, f"`# {END}` without `# {BEGIN}`.", f"Add `# {BEGIN}` above it or remove it."
                )
            opened = None
    if opened is not None:
        yield Problem(path, opened, f"`# {BEGIN}` is never closed.", f"Add `# {END}` after the solution.")
    if answer and not regions:
        yield Problem(
            path, cell.line, "the answer cell has no solution region.", f"Mark it with `# {BEGIN}` and `# {END}`."
        )


def _explanation_problems(path: Path, cell: PercentCell) -> Iterator[Problem]:
    """A free-text question is a markdown cell: the prompt, then one region with the model answer and the rubric."""
    if cell.kind != "markdown":
        yield Problem(path, cell.line, "`explain` stands at a code cell.", "Ask free text in a `[markdown]` cell.")
    elif cell.source.count(BEGIN) == cell.source.count(END) == 1:
        prompt, answer = prompt_and_answer(cell.source)
        if not prompt:
            yield Problem(path, cell.line, "the question asks nothing.", f"Write its text above `# {BEGIN}`.")
        if "rubric" not in answer.lower():
            what = "the model answer has no rubric."
            yield Problem(path, cell.line, what, "End it with `**Rubric.** 1 point: ... 1 point: ...`.")
        if cell.source.rpartition(END)[2].strip():
            yield Problem(path, cell.line, f"text stands after `# {END}`.", f"Write it above `# {BEGIN}`.")
    elif BEGIN in cell.source:
        yield Problem(path, cell.line, "a free-text question has one solution region.", "Make it one region.")


def _ladder_problems(path: Path, cell: PercentCell) -> Iterator[Problem]:
    for step in LADDER:
        if not re.search(rf"^{step}:", cell.source, re.MULTILINE):
            what = f"the help ladder has no `{step}:`."
            yield Problem(
                path, cell.line, what, f"Give it all of {', '.join(LADDER)}.", unfinished=str(cell.metadata["help"])
            )


def _question_problems(path: Path, cells: list[PercentCell], name: str) -> Iterator[Problem]:
    """What is wrong with the set of questions: ids, points, a missing text or help."""
    number = NAME.fullmatch(name)
    answers = _answer_cells(cells)
    if not answers:
        first = f"q{number[1] if number else 1}_1"
        yield Problem(path, 1, "no question in it.", f"Run `autograder new question {name} {first}`.", unfinished=name)
    seen: dict[str, int] = {}
    graded = [cell for cell in cells if cell in answers or "explain" in cell.metadata]
    for cell in graded:
        question = str(cell.metadata.get("question") or cell.metadata["explain"])
        matched = QUESTION_ID.fullmatch(question)
        if not matched or not number or matched[1] != number[1]:
            example = f"q{number[1] if number else 1}_1"
            yield Problem(path, cell.line, f"`{question}` is not a question id of {name}.", f"Write it as `{example}`.")
        if question in seen:
            what = f"question {question} is answered twice (first on line {seen[question]})."
            yield Problem(path, cell.line, what, "Give each question one answer cell and an id of its own.")
        uses = cell.metadata.get("uses", [])
        if not isinstance(uses, list) or not set(map(str, uses)) <= set(seen):
            what = f"question {question} uses {uses}, which are not all earlier questions of {name}."
            yield Problem(path, cell.line, what, f'Write something like `uses=["q{number[1] if number else 1}_1"]`.')
        seen.setdefault(question, cell.line)
        yield from _number_problems(path, cell, question)
    for kind, key in (("text", "question"), ("help ladder", "help")):
        told = [c for c in cells if c.kind == "markdown" and key in c.metadata]
        labels = [c.metadata[key] for c in told]
        for question, line in ((cell.metadata["question"], cell.line) for cell in answers):
            if labels.count(question) != 1:
                what = f"question {question} has {labels.count(question)} {kind} cells."
                lacking = "" if question in labels else str(question)
                yield Problem(path, line, what, f'Give it one `# %% [markdown] {key}="{question}"` cell.', lacking)
        for cell in told:
            if cell.metadata[key] not in seen:
                what = f"a {kind} cell for {cell.metadata[key]}, which has no answer cell."
                yield Problem(path, cell.line, what, "Correct the id or add the answer cell.")
    points = [cell.metadata.get("points") for cell in graded if cell.metadata.get("bonus") is not True]
    if graded and all(_is_positive(value) for value in points) and sum(points) != TOTAL_POINTS:  # type: ignore[arg-type]
        what = f"the points add to {sum(points):g}, not to {TOTAL_POINTS}."  # type: ignore[arg-type]
        remedy = "Change the `points=` of the questions; those with `bonus=true` do not count."
        yield Problem(path, graded[0].line, what, remedy, unfinished=name)


def _number_problems(path: Path, cell: PercentCell, question: str) -> Iterator[Problem]:
    for key, fits, wanted in (
        ("points", _is_positive, "a positive number"),
        ("minutes", _is_positive, "a positive number"),
        ("limits", _are_limits, 'something like {"wall": 60}, of autograder.box.limits'),
        ("difficulty", lambda value: value in (1, 2, 3, 4, 5), "1, 2, 3, 4 or 5"),
        ("bonus", lambda value: value in (None, True, False), "true, or leave it out"),
    ):
        if not fits(cell.metadata.get(key)):
            yield Problem(path, cell.line, f"question {question} has no usable `{key}`.", f"Set `{key}=` to {wanted}.")


def _are_limits(value: Any) -> bool:
    known = {field.name for field in fields(Limits)}
    return value is None or isinstance(value, dict) and set(value) <= known and all(map(_is_positive, value.values()))


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _suite_problems(homework: Homework, question: str | None) -> Iterator[Problem]:
    """Every question needs public checks and a hidden suite; catalogues must be readable; no file may stand alone."""
    for asked in homework.questions:
        if question not in (None, asked.id):
            continue
        for file, what in (
            (homework.public_file(asked.id), "public checks"),
            (homework.hidden_file(asked.id), "hidden suite"),
        ):
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            if "\ndef test_" not in text:
                what = f"question {asked.id} has no {what}."
                yield Problem(homework.source, asked.line, what, f"Write `{file.name}`.", unfinished=asked.id)
            yield from todo_problems(file, text, asked.id)
        yield from public_problems(homework.public_file(asked.id), homework.names)
        for folder in ("mistakes", "variants"):
            file = homework.suite / folder / f"{asked.id}.py"
            if file.is_file():
                yield from todo_problems(file, file.read_text(encoding="utf-8", errors="replace"), asked.id)
                try:
                    homework.catalogue(folder, asked)
                except BadSource as error:
                    yield from error.problems
    known = {asked.id for asked in homework.questions}
    for file in sorted(homework.suite.glob("*/*.py")) if question is None else ():
        if file.stem.removeprefix("test_") not in known and file.name != "__init__.py":
            what = "belongs to no question of the homework."
            yield Problem(file, 1, what, "Rename it after its question or delete it.", unfinished=homework.name)


def _scarce(homework: Homework, question: str | None) -> Iterator[Problem]:
    """Questions with few mistakes or variants: their suites are not much tried."""
    for asked in homework.questions:
        if question in (None, asked.id):
            for folder, least in (("mistakes", LEAST_MISTAKES), ("variants", LEAST_VARIANTS)):
                count = len((homework.mistakes if folder == "mistakes" else homework.variants)[asked.id])
                if count < least:
                    what = f"question {asked.id} has {count} {folder}, fewer than {least}."
                    yield Problem(homework.source, asked.line, what, f"Add cells to `{folder}/{asked.id}.py`.")
