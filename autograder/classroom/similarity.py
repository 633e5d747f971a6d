"""Pairs of submissions worth a look: answers that share more than right answers to the same question have to.

Names, comments and layout do not matter: code is reduced to its shape. copydetect winnows that, and leaves out what the
course itself gives. What much of the class writes alike is left out too: a textbook line shared by many says nothing.
Whole submissions that are nearly the same say something, however many they are: those are told as groups.
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
from autograder.homework import Homework

TOKENS, WINDOW = 25, 4  # the shortest copied piece that is noticed, and the winnowing window
COMMON = 0.2  # pieces that more than this share of the class has are common knowledge
CROWD = 15  # and so are those that more students than this have, however large the class
FEWEST = 5  # rare pieces that a pair must share
MAX_PAIRS = 50
NEAR = 0.9  # of the smaller one's pieces, for two submissions to count as nearly the same
LEAST = 10  # pieces of such a submission: in a few lines everybody may agree
LINE = 200  # characters of a line that are read in one piece
_KNOWN = {*keyword.kwlist, *dir(builtins), "self"}
_TOKEN = re.compile(
    r"""(?P<nothing>\#[^\n]*|\s+)
    |(?P<string>[rbuf]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\[^\n]|[^"\\\n])*"|'(?:\\[^\n]|[^'\\\n])*'))
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


def fingerprints(texts: Mapping[str, str], homework: Homework) -> dict[str, frozenset[int]]:
    """The pieces of everybody's code that the course does not give."""
    stubs = "\n\n".join(cell.source for cell in student_cells(homework, solved=False) if cell.cell_type == "code")
    given = CodeFingerprint("given.py", TOKENS, 1, filter=False, fp=io.StringIO(shape(stubs))).hashes
    return {student: _pieces(text, given) for student, text in texts.items() if text.strip()}


def near_groups(prints: Mapping[str, frozenset[int]]) -> list[list[str]]:
    """Everybody whose whole submission is nearly somebody else's, in groups, the largest first."""
    same: dict[frozenset[int], list[str]] = defaultdict(list)
    for student in sorted(prints):
        if len(prints[student]) >= LEAST:
            same[prints[student]].append(student)
    sizes = sorted(same, key=len)
    group = {pieces: {pieces} for pieces in sizes}
    for i, small in enumerate(sizes):
        for large in sizes[i + 1 :]:
            if len(large) > 2 * len(small):
                break
            if group[small] is not group[large] and len(small & large) >= NEAR * len(small):
                group[small] |= group[large]
                for member in group[large]:
                    group[member] = group[small]
    groups = {id(members): sorted(s for pieces in members for s in same[pieces]) for members in group.values()}
    return sorted((students for students in groups.values() if len(students) > 1), key=lambda g: (-len(g), g))


def rare_pairs(prints: Mapping[str, frozenset[int]]) -> list[Pair]:
    """Pairs with many rare pieces in common, the most alike first."""
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
    lines = (line[i : i + LINE] for line in code.split("\n") for i in range(0, len(line) or 1, LINE))
    return "".join(_letter(token) for token in _TOKEN.finditer(" \n".join(lines)))


def _letter(token: re.Match[str]) -> str:
    kind, text = token.lastgroup, token[0]
    if kind == "name":
        return text if text in _KNOWN else "V"
    return {"nothing": "", "string": "S", "made": "F"}.get(kind or "", text)


def _pieces(text: str, given: set[int]) -> frozenset[int]:
    fp = io.StringIO(shape(text))
    return frozenset(CodeFingerprint("answers.py", TOKENS, WINDOW, boilerplate=list(given), filter=False, fp=fp).hashes)
