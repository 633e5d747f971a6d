"""What students read of hidden cases: nothing that gives an input away while the homework is open."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import BadInput
from autograder.frontends.gradescope_run import level
from autograder.grading.levels import OURS, level_by
from autograder.judge.verdicts import Verdict
from course_utils.explain.sentences import whole

Run = Callable[..., Any]
THIEF = """
def half(x):
    print("PRINTED", x)
    if hasattr(x, "tolist"):
        raise ValueError(f"STOLEN {x.tolist()}")
    return x / 2
"""
KEEPER = """
KEPT = []


def twice(x):
    KEPT.append(x)
    return x + x
"""
TELLER = """
def half(x):
    if not hasattr(x, "tolist"):
        raise ValueError("STO" + f"LEN {KEPT[-1]}" if KEPT else "NOTHING IS KEPT")
    return x / 2
"""
CLASS = {"thief": ("def twice(x):\n    return x * 3", THIEF), "plain": ("def twice(x):\n    return x + x", THIEF)}


@pytest.fixture
def course(tiny: Path) -> Path:
    (tiny / "in").mkdir()
    for student, (twice, half) in CLASS.items():
        (tiny / "in" / f"{student}.py").write_text(f'# %% question="q9_1"\n{twice}\n# %% question="q9_2"\n{half}\n')
    return tiny


def pages(course: Path, student: str) -> tuple[str, dict[str, Any]]:
    """The page, and of its twin the cases by name."""
    html, data = ((course / "out" / "feedback" / f"{student}.{kind}").read_text() for kind in ("html", "json"))
    cases = {case["id"].rpartition("/")[2]: case for q in json.loads(data)["questions"] for case in q["cases"]}
    return html + data, cases


def journal(course: Path, case: str) -> str:
    lines = map(json.loads, (course / "out" / "results.jsonl").read_text().splitlines())
    return str(next(line["message"] for line in lines if line.get("id") == case))


def test_pages_tell_no_hidden_value_until_it_is_asked_for_and_the_journal_keeps_all(
    course: Path, grade: Run, commands: Run
) -> None:
    grade(course)
    page, cases = pages(course, "thief")
    stolen = journal(course, "thief/q9_2/test_half_of_anything")
    expected = journal(course, "thief/q9_1/test_twice_of_anything")
    assert "STOLEN" in stolen and "expected" in expected
    assert "STOLEN" not in page and "PRINTED" not in page and expected not in page
    assert cases["test_half_of_anything"]["verdict"] == "error" and "half works for any number." in page
    assert cases["test_twice_of_anything"]["message"] == whole(OURS[Verdict.FAILED])
    assert cases["test_twice_of_anything"]["taught"] == "Yours is 1.5 times the expected one everywhere."  # no value
    assert cases["test_twice_of_four"]["message"] == whole(journal(course, "thief/q9_1/test_twice_of_four"))  # public
    assert "Not x * 3." in page  # the named mistake teaches

    def recompute(*arguments: str) -> tuple[str, dict[str, Any]]:
        assert commands(course)("autograder", "recompute", "out", *arguments).code == 0
        return pages(course, "thief")

    assert "STOLEN" in recompute("--feedback", "full")[0]
    assert "STOLEN" in recompute("--due", "2020-01-01")[0]  # nobody hands in any more
    assert "STOLEN" not in recompute("--due", "2120-01-01")[0]
    assert "STOLEN" not in recompute("--due", "2020-01-01", "--feedback", "teaching")[0]

    page, cases = recompute("--feedback", "verdicts")
    assert "STOLEN" not in page and cases["test_half_of_anything"]["verdict"] == "failed"
    assert cases["test_half_of_anything"]["message"] == ""
    assert "Not x * 3." in page  # its public check fails too, and says so
    done = commands(course)("autograder", "recompute", "out", "--due", "tomorrow")
    assert done.code == 2 and "`tomorrow` is no date" in done.err


def test_what_a_hidden_call_gave_is_not_told_by_a_later_public_case(course: Path, grade: Run) -> None:
    text = f'# %% question="q9_1"\n{KEEPER}\n# %% question="q9_2"\n{TELLER}\n'
    (course / "in" / "thief.py").write_text(text)
    grade(course)
    page, cases = pages(course, "thief")
    assert cases["test_twice_of_anything"]["verdict"] == "passed"  # a hidden call has been
    assert "NOTHING IS KEPT" in cases["test_half_of_four"]["message"]
    assert "STOLEN" not in page


def test_bare_verdicts_name_no_mistake_that_only_hidden_cases_show(course: Path, grade: Run) -> None:
    answer = "def twice(x):\n    return -x if hasattr(x, 'shape') else 8.0"
    (course / "in" / "thief.py").write_text(f'# %% question="q9_1"\n{answer}\n')
    grade(course, "--feedback", "verdicts")
    data = json.loads((course / "out" / "feedback" / "thief.json").read_text())
    assert data["feedback"] == "verdicts" and data["questions"][0]["hint"] is None


def test_a_date_alone_lasts_to_its_end_and_is_ours_where_no_zone_is_told() -> None:
    here = datetime(2026, 11, 20, 23, 30).astimezone()
    assert level_by(None, "2026-11-20", here) == "teaching" and level_by(None, "2026-11-20T23:00", here) == "full"
    assert level_by(None, None, here) == "teaching" and level_by("verdicts", "2026-11-01", here) == "verdicts"
    for text in ("soon", "2026-13-01"):
        with pytest.raises(BadInput, match="is no date"):
            level_by("full", text)


def test_on_gradescope_the_last_date_counts() -> None:
    told = {
        "created_at": "2026-11-10T13:00:00.000000-08:00",
        "assignment": {"due_date": "2026-11-10T12:00:00.000000-08:00", "late_due_date": None},
        "users": [{"name": "Ada"}],
    }
    assert level(told) == "full"
    told["assignment"]["late_due_date"] = "2026-11-12T12:00:00.000000-08:00"  # type: ignore[index]
    assert level(told) == "teaching"
    assert level({}) == level({"created_at": told["created_at"]}) == "teaching"
