"""What authors meet: new homeworks and questions, drafts, one question alone, and mistakes in a suite told as such."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SUITE = "autograder/suites/hw9_tiny"


@pytest.fixture
def run(tiny: Path, commands: Run) -> Run:
    """Runs `autograder` in the tiny course."""
    tell = commands(tiny)
    return lambda *arguments: tell("autograder", *arguments)


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def files(course: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in course.rglob("*.py")}


def test_a_new_homework_is_a_page_that_says_what_it_lacks(tiny: Path, run: Run) -> None:
    made = run("new", "homework", "hw7_rope")
    assert made.code == 0 and "autograder new question hw7_rope q7_1" in made.out
    told = run("verify", "hw7_rope", "--draft")
    assert told.code == 0 and told.out.endswith("things are missing.\n"), told.out + told.err
    missing = re.findall(r"^MISSING (solutions/hw7_rope.py):(\d+): (.*)$", told.out, re.MULTILINE)
    lines = (tiny / "solutions" / "hw7_rope.py").read_text().splitlines()
    assert [line for _, line, what in missing if what.startswith("no question in it.")] == ["1"]
    assert {int(line) for _, line, what in missing if what.startswith("TODO")} == {
        number for number, line in enumerate(lines, 1) if "TODO" in line
    }
    assert run("build", "hw7_rope").code == run("verify", "hw7_rope").code == 2


def test_new_questions_build_and_are_proved_as_drafts_at_once(tiny: Path, run: Run) -> None:
    run("new", "homework", "hw7_rope")
    assert run("new", "question", "hw7_rope", "q7_2", "--name", "second", "--points", "30").code == 0
    assert run("new", "question", "hw7_rope", "q7_1").code == 0
    assert run("new", "question", "hw7_rope", "q7_3").code == 0
    source = (tiny / "solutions" / "hw7_rope.py").read_text()
    headers = re.findall(r'^# %%.*(?:question|help)="(q7_\d)"', source, re.MULTILINE)
    assert headers == ["q7_1"] * 3 + ["q7_2"] * 3 + ["q7_3"] * 3
    assert source.index("## Part I.") < source.index('"q7_1"') and source.index('"q7_3"') < source.index("## What to")
    told = run("verify", "hw7_rope", "--draft")
    assert told.code == 0, told.out + told.err
    assert re.search(r"q7_2 +30 +3 +2/2 +2/2 +2/2 +1/1", told.out)
    suite = "autograder/suites/hw7_rope"
    for place in ("public/test_q7_1.py:1:", "hidden/test_q7_2.py:1:", "mistakes/q7_3.py:3:", "variants/q7_3.py:3:"):
        assert f"MISSING {suite}/{place} TODO" in told.out
    assert "the points add to 50, not to 100" in told.out and "q7_1 has 2 mistakes, fewer than 4" in told.out
    built = run("build", "hw7_rope", "--draft")
    assert built.code == 0 and "MISSING" in built.out
    folder = tiny / "build" / "hw7_rope" / "draft"
    cells = json.loads((folder / "hw7_rope.ipynb").read_text())["cells"]
    assert any("### 7.1 TODO: a title" in "".join(cell["source"]) for cell in cells)
    assert len(list((folder / "tests").glob("*.py"))) == 3 and not (tiny / "assignments").exists()


def test_a_question_goes_below_the_one_before_it(tiny: Path, run: Run) -> None:
    path = tiny / "solutions" / "hw9_tiny.py"
    text = '# %% [markdown] question="q9_2"'
    edit(path, text, f'# %% tags=["plot"]\nprint(twice(1))\n\n{text}')
    path.write_text(path.read_text().replace('"q9_2"', '"q9_5"') + "\n# %%\nprint('check_all')\n")
    for folder, name in (("public", "test_q9_"), ("hidden", "test_q9_"), ("mistakes", "q9_"), ("variants", "q9_")):
        (tiny / SUITE / folder / f"{name}2.py").rename(tiny / SUITE / folder / f"{name}5.py")
    assert run("new", "question", "hw9_tiny", "q9_3").code == 0
    assert run("new", "question", "hw9_tiny", "q9_9").code == 0
    source = path.read_text()
    marks = ["print(twice(1))", 'question="q9_3"', 'question="q9_5"', 'help="q9_5"', 'question="q9_9"', "check_all"]
    assert [source.index(mark) for mark in marks] == sorted(source.index(mark) for mark in marks)
    assert run("verify", "hw9_tiny", "--draft").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["homework", "rope"], "`rope` is no name of a homework. Write it as hw7_rope"),
        (["homework", "hw9_tiny"], "There is already a homework 9, hw9_tiny."),
        (["homework", "hw9_other"], "There is already a homework 9, hw9_tiny."),
        (["question", "hw9_tiny", "q9_2"], "solutions/hw9_tiny.py:25: q9_2 is there already."),
        (["question", "hw9_tiny", "q8_1"], "`q8_1` is no question of hw9_tiny. Write it as q9_3."),
        (["question", "hw9_tiny", "9.3"], "`9.3` is no question of hw9_tiny. Write it as q9_3."),
        (["question", "hw8_none", "q8_1"], "There is no homework `hw8_none`."),
        (["question", "hw9_tiny", "q9_3", "--name", "half"], "The answer cannot define `half`"),
        (["question", "hw9_tiny", "q9_3", "--name", "a b"], "The answer cannot define `a b`"),
        (["question", "hw9_tiny", "q9_3", "--difficulty", "9"], "the difficulty is 1, 2, 3, 4 or 5"),
        (["question", "hw9_tiny", "q9_4"], "autograder/suites/hw9_tiny/hidden/test_q9_4.py is there already."),
    ],
)
def test_new_refuses_what_is_there_or_cannot_be(tiny: Path, run: Run, arguments: list[str], words: str) -> None:
    if "q9_4" in arguments:
        (tiny / SUITE / "hidden" / "test_q9_4.py").write_text("\n")
    before = files(tiny)
    told = run("new", *arguments)
    assert told.code == 2 and words in told.err and "Traceback" not in told.err
    assert files(tiny) == before


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("hidden/test_q9_1.py", "q9_1 has no hidden suite"),
        ("public/test_q9_1.py", "q9_1 has no public checks"),
        ("mistakes/q9_1.py", "q9_1 has 0 mistakes"),
        ("variants/q9_1.py", "q9_1 has 0 variants"),
    ],
)
def test_a_draft_is_proved_as_far_as_it_is_there(tiny: Path, run: Run, gone: str, words: str) -> None:
    (tiny / SUITE / gone).unlink()
    told = run("verify", "--draft")
    assert told.code == 0, told.out + told.err
    assert re.search(rf"^MISSING solutions/hw9_tiny.py:11: question {words}", told.out, re.MULTILINE)
    assert re.search(r"q9_2 +40 +2 +4/4 +4/4 +4/4 +3/3", told.out)
    assert run("build", "--draft").code == 0


def test_a_draft_that_does_not_hold_exits_with_1(tiny: Path, run: Run) -> None:
    (tiny / SUITE / "mistakes" / "q9_2.py").unlink()
    edit(tiny / SUITE / "hidden" / "test_q9_1.py", "reference.twice(x)", "reference.twice(x) + 1")
    told = run("verify", "--draft")
    assert told.code == 1 and "MISS q9_1 reference: is right, but q9_1/test_twice_of_anything says failed" in told.out


def test_few_mistakes_are_a_warning_of_build_and_verify(tiny: Path, run: Run) -> None:
    (tiny / SUITE / "mistakes" / "q9_2.py").unlink()
    for command in ("build", "verify"):
        told = run(command)
        assert told.code == 0, told.err
        assert "Warning: solutions/hw9_tiny.py:29: question q9_2 has 0 mistakes, fewer than 4." in told.out


def test_one_question_alone_does_not_look_at_the_others(tiny: Path, run: Run) -> None:
    (tiny / SUITE / "hidden" / "test_q9_2.py").write_text("\nimport nothing_of_that_name\n\ndef test_x(half): ...\n")
    (tiny / SUITE / "variants" / "q9_2.py").write_text("# %% A Bad Label\nx = 1\n")
    assert run("verify", "hw9_tiny").code == 2
    told = run("verify", "hw9_tiny", "--question", "q9_1")
    assert told.code == 0, told.err
    rows = [line.split()[0] for line in told.out.splitlines() if line.startswith("  q") or line.startswith("  all")]
    assert rows == ["question", "q9_1"]
    assert "hw9_tiny" in run("verify", "--question", "q9_1").out.splitlines()


def test_a_question_that_does_not_exist_is_refused(tiny: Path, run: Run) -> None:
    for arguments in (["hw9_tiny", "--question", "q9_7"], ["--question", "q9_7"]):
        told = run("verify", *arguments)
        assert told.code == 2 and told.err == "hw9_tiny has no question q9_7. It has q9_1, q9_2.\n"
    assert run("verify", "--question", "q5_1").err == "No homework has a question q5_1. There are hw9_tiny.\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("reference.twice(x)", "referenc.twice(x)", "10: NameError: name 'referenc' is not defined"),
        ("reference.twice(x)", "reference.twic(x)", "10: AttributeError: "),
        ("same(twice(x), ", "same(twice(x) + len(x, x), ", "10: TypeError: "),
        ("    x = torch", "    {}['q']\n    x = torch", "9: KeyError: 'q'"),
    ],
)
def test_a_mistake_in_a_suite_is_told_with_its_line(tiny: Path, run: Run, old: str, new: str, words: str) -> None:
    edit(tiny / SUITE / "hidden" / "test_q9_1.py", old, new)
    told = run("verify", "--question", "q9_1")
    place = f"{SUITE}/hidden/test_q9_1.py"
    assert told.code == 1
    assert f"q9_1 reference: is right, but q9_1/test_twice_of_anything itself fails, at {place}:{words}" in told.out
    assert "with what your code gave back" not in told.out


def test_a_mistyped_fixture_is_told_with_its_line_and_the_known_names(tiny: Path, run: Run) -> None:
    edit(tiny / SUITE / "hidden" / "test_q9_1.py", "(twice, reference, rng)", "(twice, reference, rgn)")
    told = run("verify")
    words = f"{SUITE}/hidden/test_q9_1.py:5: `test_twice_of_anything` asks for `rgn`, which nothing gives."
    assert told.code == 2 and words in told.err
    assert "Known: twice, half, rng, reference, student, anew, in_box, watch." in told.err


def test_a_public_check_with_a_staff_fixture_is_not_built(tiny: Path, run: Run) -> None:
    edit(tiny / SUITE / "public" / "test_q9_1.py", "(twice):", "(twice, reference):")
    for arguments in (["build"], ["verify", "--draft"]):
        told = run(*arguments)
        words = f"{SUITE}/public/test_q9_1.py:5: `test_twice_of_four` asks for `reference`, which students do not have."
        assert told.code == 2 and words in told.err
    assert not (tiny / "assignments").exists()


def test_build_writes_the_table_of_homeworks_and_check_finds_it_stale(tiny: Path, run: Run) -> None:
    readme = tiny / "README.md"
    marks = "<!-- homeworks: written by `autograder build` -->\n<!-- end of homeworks -->"
    readme.write_text(f"# A course\n\n{marks}\n\nEnd.\n")
    assert run("build").code == 0
    written = readme.read_text()
    assert "| **hw9_tiny** | a tiny homework |  |\n<!-- end" in written and written.endswith("-->\n\nEnd.\n")
    assert run("build", "--check").code == 0
    edit(
        tiny / "solutions" / "hw9_tiny.py",
        "# %% [markdown]\n# # A tiny",
        '# %% [markdown] summary="two sums"\n# # A tiny',
    )
    told = run("build", "--check")
    assert told.code == 1 and "README.md is stale" in told.out
    assert run("build").code == 0 and "| **hw9_tiny** | a tiny homework | two sums |" in readme.read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("import torch\n", "import torch\n\nx = torch.onse(2)\n", ":7: this code raises AttributeError: "),
        ("def half(x):", "half_of = unknown\ndef half(x):", ":30: this code raises NameError: name 'unknown' is not"),
    ],
)
def test_source_code_that_raises_is_told_with_its_line(tiny: Path, run: Run, old: str, new: str, words: str) -> None:
    edit(tiny / "solutions" / "hw9_tiny.py", old, new)
    told = run("verify")
    assert told.code == 2 and f"solutions/hw9_tiny.py{words}" in told.err and "Traceback" not in told.err
