"""`autograder verify` remembers what it has proved, in a file that changes only where a suite does."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from autograder.homework import Homework, read_homework
from autograder.proved import Row, recall, remember

Run = Callable[..., Any]
UNCHANGED = "hw9_tiny: 2 of 2 questions unchanged since they were proved; --anew proves all."


def proved(course: Path) -> Path:
    return course / "autograder" / "suites" / "hw9_tiny" / "proved.json"


def read(course: Path) -> Homework:
    return read_homework("hw9_tiny", course / "solutions", course / "autograder" / "suites")


@pytest.fixture
def verify(tiny: Path, commands: Run) -> Run:
    return lambda *arguments: commands(tiny)("autograder", "verify", *arguments)


def test_what_is_proved_is_proved_again_only_where_something_changed(tiny: Path, verify: Run) -> None:
    told = verify("--seed", "1")
    assert told.code == 0 and not proved(tiny).exists(), told.err
    told = verify("--question", "q9_2")
    assert "0 of 1 questions unchanged since they were proved; proved now: q9_2." in told.out
    told = verify("--json")
    assert "1 of 2 questions unchanged since they were proved; proved now: q9_1." in told.err
    first, second, whole = json.loads(told.out)["homeworks"]["hw9_tiny"]
    counts = {"cases": 2, "mistakes": 4, "caught": 4, "named": 4, "variants": 3, "kept": 3}
    counts |= {"public": 4, "unseen": []}
    assert len(second.pop("fails")) == 4
    assert second == {"question": "q9_2", "points": 40, "seconds": None} | counts and first["seconds"] > 0
    assert whole["mistakes"] == 8 and whole["points"] == 100

    kept = proved(tiny).read_bytes()
    told = verify()
    assert told.code == 0 and UNCHANGED in told.out and "Every mistake loses points" in told.out
    assert proved(tiny).read_bytes() == kept
    assert [line for line in kept.decode().splitlines() if "q9_" in line] == kept.decode().splitlines()[3:5]

    variants = tiny / "autograder" / "suites" / "hw9_tiny" / "variants" / "q9_1.py"
    variants.write_text(variants.read_text().replace("2.0 * x", "x * 2.0") + "\n# a comment\n")
    assert "proved now: q9_1." in verify().out
    after = proved(tiny).read_bytes()
    assert [a == b for a, b in zip(kept.splitlines(), after.splitlines(), strict=True)].count(False) == 1

    # what misses is forgotten, and proved at every turn
    good = variants.read_text()
    variants.write_text(good + '\n# %% not-right\n"""Wrong."""\ndef twice(x):\n    return x\n')
    for _ in range(2):
        told = verify()
        assert told.code == 1 and "proved now: q9_1." in told.out and "q9_1 variant not-right" in told.out
    assert list(json.loads(proved(tiny).read_text())["questions"]) == ["q9_2"]
    variants.write_text(good)
    assert verify("--anew").code == 0 and "unchanged" not in verify("--anew").out
    assert proved(tiny).read_bytes() == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ('{"version": 7, "questions": {}}', "its version is 7, not 2"),
        ('{"version": 2, "questions": {"q9_1": {"proof": 3}}}', "an entry is none of verify's"),
        ("[]", "list indices"),
    ],
)
def test_a_file_that_is_damaged_or_of_another_version_is_told_and_replaced(tiny: Path, text: str, why: str) -> None:
    proved(tiny).write_text(text)
    homework = read(tiny)
    rows, trouble = recall(homework)
    assert rows == {} and why in trouble and "proved.json is of no use" in trouble
    row = Row("q9_1", 60, 2, 4, 4, 4, 3, 3, 0.5)
    assert remember(homework, "q9_1", row) == ""
    rows, trouble = recall(homework)
    assert trouble == "" and list(rows) == ["q9_1"] and rows["q9_1"].seconds is None


def test_many_writers_lose_nothing(tiny: Path) -> None:
    homework = read(tiny)
    row = Row("", 0, 2, 4, 4, 4, 3, 3, 0.5)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda i: remember(homework, f"q9_{1 + i % 2}", row), range(40)))
    assert set(told) == {""} and list(recall(homework)[0]) == ["q9_1", "q9_2"]
    assert [path.name for path in proved(tiny).parent.iterdir() if path.is_file()] == ["proved.json"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (
            "solutions/hw9_tiny.py",
            "    # BEGIN SOLUTION\n    return 2",
            "    y = 0\n    # BEGIN SOLUTION\n    return 2",
        ),
        (
            "autograder/suites/hw9_tiny/hidden/test_q9_1.py",
            "def test_",
            "import pytest\n@pytest.mark.weight(0)\ndef test_",
        ),
        ("autograder/suites/hw9_tiny/variants/q9_1.py", "x + x", "x * 1 + x"),
    ],
)
def test_stubs_weights_and_variants_are_part_of_a_proof(tiny: Path, file: str, old: str, new: str) -> None:
    row = Row("", 0, 2, 4, 4, 4, 3, 3, 0.5)
    for question in ("q9_1", "q9_2"):
        remember(read(tiny), question, row)
    assert list(recall(read(tiny))[0]) == ["q9_1", "q9_2"]
    (tiny / file).write_text((tiny / file).read_text().replace(old, new, 1))
    assert list(recall(read(tiny))[0]) == ["q9_2"]
