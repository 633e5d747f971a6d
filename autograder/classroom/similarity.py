"""Pairs of submissions worth a look: answers that share more than right answers to the same question have to.

Names, comments and layout do not matter: code is reduced to its shape. copydetect winnows that, and leaves out what the
course itself gives. What much of the class writes alike is left out too: a textbook line shared by many says nothing.
"""

from __future__ import annotations

import builtins
import io
import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from copydetect import CodeFingerprint

from autograder.builder.notebooks import student_cells
from autograder.grading.collect import Entry
from autograder.homework import Homework
from autograder.submission import BadSubmission, parse_submission

TOKENS, WINDOW = 25, 4  # the shortest copied piece that is noticed, and the winnowing window
COMMON = 0.2  # pieces that more than this share of the class has are common knowledge
CROWD = 15  # and so are those that more students than this have, however large the class
FEWEST = 5  # rare pieces that a pair must share
MAX_SOURCE = 200_000
MAX_PAIRS = 50
_KNOWN = {*keyword.kwlist, *dir(builtins), "self"}
_TOKEN = re.compile(
    r"""(?P<nothing>\#[^\n]*|\s+)
    |(?P<string>[rbuf]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<made>(?:(?<=def\ )|(?<=class\ ))\w+)
    |(?P<name>[^\W\d]\w*)
    |\d\w*|.""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Pair:
    """Two students, the share of rare pieces that they have in common, and how many these are."""

    left: str
    right: str
    share: float
    pieces: int


def answer_text(entry: Entry, homework: Homework) -> str:
    """The code of the student's answer cells, as one piece of Python."""
    try:
        submission = parse_submission(entry.content or b"", entry.suffix, homework)
    except BadSubmission:
        return ""
    return "\n\n".join(cell.source for cell in submission.cells if cell.keep)[:MAX_SOURCE]


def similar_pairs(texts: Mapping[str, str], homework: Homework) -> list[Pair]:
    """Pairs with many rare pieces in common, the most alike first."""
    stubs = "\n\n".join(cell.source for cell in student_cells(homework, solved=False) if cell.cell_type == "code")
    given = CodeFingerprint("given.py", TOKENS, 1, filter=False, fp=io.StringIO(shape(stubs))).hashes
    prints = {student: _pieces(text, given) for student, text in texts.items() if text.strip()}
    holders: dict[int, list[str]] = defaultdict(list)
    for student, pieces in prints.items():
        for piece in pieces:
            holders[piece].append(student)
    most = max(2, min(COMMON * len(prints), CROWD))
    rare = Counter(student for students in holders.values() if len(students) <= most for student in students)
    shared = Counter(
        pair
        for students in holders.values()
        if 2 <= len(students) <= most
        for pair in combinations(sorted(students), 2)
    )
    pairs = [
        Pair(left, right, n / min(rare[left], rare[right]), n) for (left, right), n in shared.items() if n >= FEWEST
    ]
    return sorted(pairs, key=lambda pair: (-pair.share * pair.pieces**0.5, pair.left, pair.right))[:MAX_PAIRS]


def shape(code: str) -> str:
    """The code without comments and layout, with a letter for each string, each definition and each name."""
    return "".join(_letter(token) for token in _TOKEN.finditer(code))


def _letter(token: re.Match[str]) -> str:
    kind, text = token.lastgroup, token[0]
    if kind == "name":
        return text if text in _KNOWN else "V"
    return {"nothing": "", "string": "S", "made": "F"}.get(kind or "", text)


def _pieces(text: str, given: set[int]) -> set[int]:
    fp = io.StringIO(shape(text))
    return set(CodeFingerprint("answers.py", TOKENS, WINDOW, boilerplate=list(given), filter=False, fp=fp).hashes)
