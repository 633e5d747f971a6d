"""Which cells of a notebook answer what, which homework it is of, and what had to be assumed to say so."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path

from autograder.assumptions import Assumption, listed
from autograder.homework import NAME, QUESTION_ID, Explanation, Homework, Question
from course_utils.terminal.definitions import defined_names, imported_names
from course_utils.terminal.renamed import Parameters, Renamed, renamed, signatures

MAX_TEXT = 20_000  # characters kept of a free-text answer
TEXT_STUB = "YOUR ANSWER HERE"  # nbgrader's
MOST = 5  # cells of one question that are told
CHECK = "test_"  # the id of a check cell is this and its question's id
_TITLE = re.compile(r"^# # *(.+?) *$", re.MULTILINE)


@dataclass
class FoundCell:
    """A code, markdown or raw cell as it stands in the file."""

    position: int
    grade_id: str
    tags: set[str]
    source: str
    kind: str = "code"
    answered: frozenset[str] = frozenset()  # the names it defines, stubs aside
    stubs: frozenset[str] = frozenset()  # those that are as they were handed out
    magic: str = ""  # `%%bash` and the like on top: then it is no Python
    unread: frozenset[str] = frozenset()  # the names that stand below such a magic
    signatures: Mapping[str, Parameters] = field(default_factory=dict)  # of the functions and classes that it answers
    imported: frozenset[str] = frozenset()  # the names that it imports
    runs: bool = False  # whether there is Python in it

    @property
    def question(self) -> str:
        """The question to which the cell belongs by its id, or its check."""
        return self.grade_id.removeprefix(CHECK)

    @property
    def is_text(self) -> bool:
        """Whether it may be an answer in words: also one that was typed into a code cell."""
        return bool(self.source.strip()) and (self.kind != "code" or not (self.runs or self.magic))


@dataclass
class Answers:
    """Which names count as defined in which cell, by its position; and names that stand for others there."""

    keep: dict[int, list[str]] = field(default_factory=dict)
    aliases: dict[int, list[Renamed]] = field(default_factory=dict)
    assumptions: list[Assumption] = field(default_factory=list)

    def take(self, cell: FoundCell, name: str) -> None:
        """Have a name count as defined in a cell."""
        self.keep.setdefault(cell.position, []).append(name)

    def assume(self, kind: str, question: str, told: str, cells: Sequence[FoundCell], not_taken: str = "") -> None:
        """Note down what was assumed about a question."""
        where = f"cell {_places(cells)}" if cells else question
        self.assumptions.append(Assumption(kind, f"{question}: {told}", not_taken, where))


def _places(cells: Sequence[FoundCell]) -> str:
    return listed((str(cell.position) for cell in cells), 2 * MOST)


def another_homework(cells: Sequence[FoundCell], says: str, homework: Homework) -> str:
    """The homework that a notebook is of, where it is not this one: by its ids, else its metadata, else its title."""
    mine = _number(homework.name)
    ids = Counter(found[1] for cell in cells if (found := QUESTION_ID.fullmatch(cell.question)))
    if ids:
        number = mine if mine in ids else ids.most_common(1)[0][0]
        return "" if number == mine else _named(homework.source.parent, number)
    if NAME.fullmatch(says):
        return "" if _number(says) == mine else says
    first = next((cell.source.strip() for cell in cells if cell.kind == "markdown" and cell.source.strip()), "")
    known = _titles(homework.source.parent)
    told = known.get(first.partition("\n")[0].removeprefix("# ").strip(), homework.name)
    return "" if told == homework.name else told


def _number(name: str) -> str:
    found = NAME.fullmatch(name)
    return found[1] if found else ""


def _named(solutions: Path, number: str) -> str:
    return next((path.stem for path in sorted(solutions.glob(f"hw{number}_*.py"))), f"hw{number}")


@cache
def _titles(solutions: Path) -> dict[str, str]:
    """The homeworks of a course by the titles of their notebooks."""
    texts = {path.stem: path.read_text(encoding="utf-8", errors="replace") for path in solutions.glob("hw*.py")}
    return {found[1]: name for name, text in texts.items() if NAME.fullmatch(name) and (found := _TITLE.search(text))}


def answer_cells(found: Sequence[FoundCell], homework: Homework, grade_renamed: bool = True) -> Answers:
    """Which names count as defined in which cell: by grade id, the last one first, else by the names it defines."""
    answers = Answers()
    for question in homework.questions:
        labelled = [cell for cell in found if cell.grade_id == question.id]
        _tell_magics(question, found, answers)
        homes: dict[str, FoundCell] = {}
        for name in question.names:
            home = next((cell for cell in reversed(labelled) if name in cell.answered), None)
            if home is None:
                home = _elsewhere(question, name, found, answers)
            if home is not None:
                homes[name] = home
                answers.take(home, name)
        _tell_duplicates(question, labelled, homes, answers)
        missing = [name for name in question.names if name not in homes]
        if missing:
            _renamed(question, missing, found, homework, answers, grade_renamed)
    return answers


def _tell_magics(question: Question, found: Sequence[FoundCell], answers: Answers) -> None:
    unread = [c for c in found if c.magic and (c.grade_id == question.id or c.unread & set(question.names))]
    for cell in unread[:MOST]:
        told = f"cell {cell.position} begins with `{cell.magic}` and was not run as Python: "
        answers.assume("cell", question.id, f"{told}delete that line to have the cell graded.", [cell])


def _elsewhere(question: Question, name: str, found: Sequence[FoundCell], answers: Answers) -> FoundCell | None:
    """The last cell that defines the name without bearing the question's id."""
    homes = [cell for cell in found if name in cell.answered]
    if not homes:
        return None
    *others, home = homes
    told = f"`{name}` was taken from cell {home.position}, outside the answer cell."
    answers.assume("elsewhere", question.id, told, [home], listed(f"cell {cell.position}" for cell in others))
    return home


def _tell_duplicates(
    question: Question, labelled: list[FoundCell], homes: Mapping[str, FoundCell], answers: Answers
) -> None:
    """Several cells with one id: of the one that was graded, and of the others."""
    if len(labelled) < 2:
        return
    graded = {cell.position: cell for cell in homes.values() if cell in labelled}
    places = _places(labelled)
    if len(graded) > 1:
        parts = "; ".join(f"`{name}` was taken from cell {cell.position}" for name, cell in homes.items())
        told = f"cells {places} carry this question's id; {parts}."
    else:
        chosen = next(iter(graded), None)
        told = f"cells {places} carry this question's id; "
        told += f"cell {chosen} was graded, the last that is answered." if chosen else "none of them is answered."
    others = [f"cell {cell.position}" for cell in labelled if cell.position not in graded]
    answers.assume("duplicate", question.id, told, labelled, listed(others) if graded else "")


def _renamed(
    question: Question,
    missing: list[str],
    found: Sequence[FoundCell],
    homework: Homework,
    answers: Answers,
    grade_renamed: bool,
) -> None:
    """Find answers under other names: one that fits is graded, where that is wanted; what does not fit is told."""
    wanted, known = _wanted(question.answer), {*homework.names, *_course_names(homework).given}
    labelled = [cell for cell in found if cell.grade_id == question.id]
    nearby = list(_nearby(question, found)) if labelled else [cell for cell in found if not cell.grade_id]
    left = dict.fromkeys(missing)
    for cell in reversed([*labelled, *nearby]):
        for one in renamed(left, wanted, cell.signatures, known):
            if one.meant and (labelled or _alike(one.meant, one.expected)):
                del left[one.expected]
                if grade_renamed:
                    answers.take(cell, one.expected)
                    answers.aliases.setdefault(cell.position, []).append(one)
                told = f"your cell defines `{one.meant}`; expected `{one.expected}`. It was "
                told += f"graded as `{one.expected}`." if grade_renamed else "not graded: give it that name."
                answers.assume("renamed" if grade_renamed else "misnamed", question.id, told, [cell])
    for cell in labelled[-1:] or nearby:
        for one in renamed([name for name in left if name not in cell.stubs], wanted, cell.signatures, known):
            if labelled or one.meant:
                del left[one.expected]
                told = f"{one}. It was not graded: give the function that is meant this name and its parameters."
                answers.assume("misnamed", question.id, told, [cell])


def _nearby(question: Question, found: Sequence[FoundCell]) -> Iterator[FoundCell]:
    """The cells without an id between a question's own cell and the next question's."""
    here = False
    for cell in found:
        here = cell.question == question.id or (here and not cell.grade_id)
        if here and not cell.grade_id:
            yield cell


def _alike(name: str, expected: str) -> bool:
    short, long = sorted((plain.replace("_", "").lower() for plain in (name, expected)), key=len)
    return short in long


@cache
def _wanted(answer: str) -> Mapping[str, Parameters]:
    """The parameters of what the reference's answer defines."""
    return signatures(ast.parse(answer).body)


@dataclass(frozen=True)
class _CourseNames:
    """What the course's own cells bind: in cells that are no answers, its functions and classes there, anywhere."""

    given: frozenset[str]
    functions: frozenset[str]
    anywhere: frozenset[str]


@cache
def _course_names(homework: Homework) -> _CourseNames:
    given, functions, anywhere = set[str](), set[str](), set(homework.names)
    for cell in homework.cells:
        if cell.kind == "code":
            body = ast.parse(cell.source).body
            anywhere |= {*defined_names(body), *imported_names(body)}
            if "question" not in cell.metadata:
                given |= set(defined_names(body))
                functions |= set(signatures(body))
    return _CourseNames(*map(frozenset, (given, functions, anywhere)))


def helpers_of(cell: FoundCell, homework: Homework) -> set[str]:
    """What a plot, training or check cell defines or imports that no cell of the course does."""
    return {*cell.signatures, *cell.imported} - _course_names(homework).anywhere


def new_meanings(found: Sequence[FoundCell], homework: Homework, keep: Mapping[int, object]) -> Iterator[Assumption]:
    """Cells outside the answers that give a name of the course's or of Python's another meaning: answers feel it."""
    given = _course_names(homework).functions
    for cell in found:
        if cell.position in keep or cell.grade_id or cell.source.strip() in _given_sources(homework):
            continue
        ours = sorted(cell.answered & given - set(homework.names))
        pythons = sorted(name for name in cell.answered if hasattr(builtins, name))
        for names, whose in ((ours, "the course gives"), (pythons, "Python has")):
            if names:
                told = f"cell {cell.position} gives {listed(f'`{name}`' for name in names)} another meaning, which "
                told += f"{whose}: your answers use yours."
                yield Assumption("cell", told, where=f"cell {cell.position}")


@cache
def _given_sources(homework: Homework) -> frozenset[str]:
    return frozenset(cell.source.strip() for cell in homework.cells)


def free_texts(cells: Sequence[FoundCell], homework: Homework) -> tuple[dict[str, str], list[Assumption]]:
    """The answers in words, "" where nothing is written: by grade id, else what stands beside that cell."""
    texts, answers = {}, Answers()
    for asked in homework.explanations:
        own = [cell for cell in cells if cell.grade_id == asked.id]
        written = [cell for cell in own if _words(cell)]
        if len(written) > 1:
            places = _places(written)
            answers.assume("duplicate", asked.id, f"cells {places} carry its id; all of them are read.", written)
        if not written:
            written = _beside(asked, cells, homework)
            if written:
                places = _places(written)
                told = f"the answer was taken from cell {places}, beside its own." if own else ""
                told = told or f"the answer was taken from cell {places}, below the question."
                answers.assume("text", asked.id, told, written)
            elif not own:
                answers.assume("text", asked.id, "there is no cell for the answer in your notebook.", [])
        text = "\n\n".join(map(_words, written))
        text = "\n".join(text.splitlines())  # whatever breaks a line here or there breaks it everywhere
        if len(text) > MAX_TEXT:
            told = f"the answer is longer than {MAX_TEXT} characters; the rest is not read."
            answers.assume("text", asked.id, told, written)
        texts[asked.id] = text[:MAX_TEXT].encode("utf-8", "replace").decode().strip()
    return texts, answers.assumptions


def _words(cell: FoundCell) -> str:
    return "" if cell.source.strip() == TEXT_STUB else cell.source.removeprefix(f"{TEXT_STUB}\n").strip()


def _beside(asked: Explanation, cells: Sequence[FoundCell], homework: Homework) -> list[FoundCell]:
    """Cells of the student's own with words in them, right below the answer's cell or right above it."""
    own = [i for i, cell in enumerate(cells) if cell.grade_id == asked.id]
    heading = asked.prompt.partition("\n")[0]
    prompts = [i for i, cell in enumerate(cells) if not cell.grade_id and cell.source.startswith(heading)]
    found: list[FoundCell] = []
    for start in sorted({*own, *prompts}):
        below = takewhile(lambda cell: _is_free(cell, homework), cells[start + 1 :])
        found += [cell for cell in below if cell.source.strip()]
    return found


def _is_free(cell: FoundCell, homework: Homework) -> bool:
    """Whether a cell holds words of the student's own, or nothing."""
    first = cell.source.lstrip().partition("\n")[0]
    given = first in _first_lines(homework) or first.startswith("<details>")
    return not first or (not cell.grade_id and cell.is_text and not given)


@cache
def _first_lines(homework: Homework) -> frozenset[str]:
    return frozenset(cell.source.lstrip().partition("\n")[0] for cell in homework.cells)
