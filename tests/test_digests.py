"""A digest covers what a question's facts can reach, by meaning, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder import digests
from autograder.digests import question_digest, understood, unweighed
from autograder.homework import read_homework

SUITE = Path("autograder") / "suites" / "hw9_tiny"
SOURCE = Path("solutions") / "hw9_tiny.py"
PUBLIC = SUITE / "public" / "test_q9_1.py"
HIDDEN = SUITE / "hidden" / "test_q9_1.py"
MISTAKES = SUITE / "mistakes" / "q9_1.py"
VARIANTS = SUITE / "variants" / "q9_1.py"


def both(course: Path) -> tuple[str, str]:
    homework = read_homework("hw9_tiny", course / "solutions", course / "autograder" / "suites")
    return question_digest(homework, "q9_1"), question_digest(homework, "q9_2")


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        (SOURCE, "minutes=5 difficulty=1", "minutes=9 difficulty=2", ()),
        (SOURCE, "# Return twice", "# Give back twice", ()),
        (SOURCE, '"""Twice x."""', '"""The double."""', ()),
        (PUBLIC, "def probe_twice(twice):", "# a comment\ndef probe_twice(twice):", ()),
        (HIDDEN, "def test_twice", "import pytest\n\n\n@pytest.mark.weight(3)\ndef test_twice", ()),
        (VARIANTS, "2.0 * x", "x * 2.0", ()),
        (SOURCE, "return 2 * x", "return x * 2", ("q9_1",)),
        (SOURCE, "import torch", "import torch, math", ("q9_1", "q9_2")),
        (SOURCE, 'question="q9_1" points', 'question="q9_1" limits={"wall": 7} points', ("q9_1",)),
        (PUBLIC, "twice(4.0)", "twice(4)", ("q9_1",)),
        (HIDDEN, "works for any number", "works for every number", ("q9_1",)),
        (MISTAKES, "Not x * 3.", "Not three times x.", ("q9_1",)),
        (MISTAKES, "return x * 3", "return 3 * x", ("q9_1",)),
        (HIDDEN, "reference.twice(x)", "2 * reference.half(2 * x)", ("q9_1",)),
    ],
)
def test_a_change_makes_those_questions_stale_that_it_can_reach(
    tiny: Path, file: Path, old: str, new: str, changed: tuple[str, ...]
) -> None:
    before = both(tiny)
    text = (tiny / file).read_text()
    assert old in text
    (tiny / file).write_text(text.replace(old, new, 1))
    after = both(tiny)
    assert tuple(q for q, a, b in zip(("q9_1", "q9_2"), before, after, strict=True) if a != b) == changed


def test_what_a_question_uses_counts_as_a_whole_and_what_its_tests_name_as_an_answer(tiny: Path) -> None:
    source = tiny / SOURCE
    source.write_text(source.read_text().replace('question="q9_2" points', 'question="q9_2" uses=["q9_1"] points'))
    first, second = both(tiny)
    (tiny / HIDDEN).write_text((tiny / HIDDEN).read_text().replace("randn(3", "randn(4"))
    assert all(a != b for a, b in zip((first, second), both(tiny), strict=True))

    source.write_text(source.read_text().replace(' uses=["q9_1"]', ""))
    hidden = tiny / SUITE / "hidden" / "test_q9_2.py"
    hidden.write_text(hidden.read_text().replace("reference.half(x)", "reference.twice(x) / 4"))
    _, second = both(tiny)
    source.write_text(source.read_text().replace("return 2 * x", "return x * 2"))
    assert second != both(tiny)[1]


@pytest.fixture
def package(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, str]]]:
    """Writes modules of a package `ours` into the course; `reached(code)` is then what the code imports of them."""
    monkeypatch.setattr(digests, "COURSE", tiny)
    digests._file.cache_clear()

    def reached(code: str, **files: str) -> dict[str, str]:
        for name, text in files.items():
            path = tiny / "ours" / f"{name.replace('__', '/') if name != '__init__' else name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return digests._reached([understood(code)], [])

    yield reached
    digests._file.cache_clear()


def test_modules_count_where_they_are_imported_at_once_in_a_function_or_by_a_lazy_name(
    package: Callable[..., dict[str, str]],
) -> None:
    files = {
        "__init__": 'HOMES = {"colours": "room.palette", "Pen": "pens"}\n',
        "room__palette": "RED = 1\n",
        "pens": "def draw():\n    from ours import base\n",
        "base": '"""A base."""\nX = 1\n',
        "other": "Y = 1\n",
    }
    assert package("import torch\n", **files) == {}
    assert package("def f():\n    import ours.other\n").keys() == {"ours", "ours.other"}
    assert package("from ours import Pen\n").keys() == {"ours", "ours.pens", "ours.base"}
    assert package("from ours import colours\n").keys() == {"ours", "ours.room.palette"}
    before = package("from ours.pens import draw\n")
    assert package("from ours.pens import draw\n", base="X = 1  # a comment\n") == before
    assert package("from ours.pens import draw\n", other="Y = 2\n") == before
    assert package("from ours.pens import draw\n", base="X = 2\n") != before


def test_a_comment_in_any_module_of_ours_changes_no_question_of_the_course() -> None:
    homework = read_homework("hw4_translation")
    code = [understood(digests._text(homework.hidden_file("q4_7")))]
    names = digests._reached(code, digests.engine_modules()).keys()
    assert {
        "autograder.suites.hw4_translation.oracle",
        "course_utils.checking.compare",
        "autograder.box.server",
    } <= names
    assert (
        "autograder.judge.candidate" in names and not {"autograder", "autograder.homework", "course_utils.hw5"} & names
    )
    for name in names:
        text = digests._text(digests._file(name) or Path())
        assert understood(f"# a comment\n{text}\n# the end\n") == understood(text)


def test_what_python_cannot_read_means_itself() -> None:
    assert understood("def (") != understood("def )") and unweighed("def (") == understood("def (")
