"""The page on what the course grew out of follows from the headers of the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.builder.sources import missing_items, source_files, source_problems, untold_reasons
from autograder.errors import BadInput
from autograder.places import REPOSITORY

ITEMS = """
[collections]
000 = "a sheet"
[items]
"000/a" = "one"
"000/b-ii" = "two"
"000/c" = "three"
"000/d" = "four"
"""


@pytest.fixture
def course(tiny: Path) -> Path:
    (tiny / "docs").mkdir()
    (tiny / "docs" / "sources.toml").write_text(ITEMS)
    return tiny


def tag(course: Path, old: str, new: str) -> None:
    path = course / "solutions" / "hw9_tiny.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def page(course: Path) -> str:
    ((path, content),) = source_files(course, course / "solutions").items()
    assert path == course / "docs" / "sources.md"
    return content.decode()


def test_each_item_has_a_row_with_where_it_is_met_and_how(course: Path) -> None:
    tag(course, '# %% [markdown] question="q9_1"', '# %% [markdown] question="q9_1" sources="000/a 000/b-ii"')
    source = course / "solutions" / "hw9_tiny.py"
    end = '\n# %% [markdown] told="000/c: an opinion, nothing to grade; 000/b-ii"\n# ## What others say\n'
    source.write_text(source.read_text() + end)
    text = page(course)
    assert "| `000/a` | one | hw9 q9_1 | graded by code |" in text
    assert "| `000/b-ii` | two | hw9 q9_1; hw9 What others say | graded by code |" in text
    assert "| `000/c` | three | hw9 What others say | told: an opinion, nothing to grade |" in text
    assert "| `000/d` | four | missing |  |" in text
    assert "2 are graded by code, 0 in words, 1 are only told, for a reason, and 1 are missing." in text
    assert missing_items(course, course / "solutions") == ["000/d"]
    assert not list(source_problems(course, course / "solutions")) and not list(untold_reasons(course / "solutions"))


def test_an_item_that_is_none_and_a_header_at_the_wrong_cell_are_problems(course: Path) -> None:
    tag(course, '# %% [markdown] question="q9_1"', '# %% [markdown] question="q9_1" sources="000/x"')
    tag(course, '# %% question="q9_1"', '# %% question="q9_1" sources="000/a"')
    told = [problem.what for problem in source_problems(course, course / "solutions")]
    assert told == ["`sources` stands at a cell that asks nothing.", "`000/x` is no item of docs/sources.toml."]


def test_what_is_only_told_has_a_reason(course: Path) -> None:
    source = course / "solutions" / "hw9_tiny.py"
    source.write_text(source.read_text() + '\n# %% [markdown] told="000/c"\n# So it is.\n')
    (problem,) = untold_reasons(course / "solutions")
    assert problem.remedy == 'Write `told="000/c: reason"`.'


def test_a_course_without_a_list_has_no_page(tiny: Path) -> None:
    assert source_files(tiny, tiny / "solutions") == {} and missing_items(tiny, tiny / "solutions") == []


def test_a_broken_list_is_told_with_its_file(course: Path) -> None:
    (course / "docs" / "sources.toml").write_text("[items]\n")
    with pytest.raises(BadInput, match="not a list of sources"):
        page(course)


def test_the_course_s_own_page_is_up_to_date() -> None:
    for path, content in source_files(REPOSITORY, REPOSITORY / "solutions").items():
        assert path.read_bytes() == content, "run `autograder build` and commit docs/sources.md"
