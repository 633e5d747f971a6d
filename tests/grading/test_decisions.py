"""What instructors do next: waive a bad case, comment, hand back, forget; and results that say what they are."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import BadInput
from autograder.grading.waivers import check, of_cases
from autograder.judge.results import CaseResult, HandGrade, QuestionResult, Waiver
from autograder.judge.verdicts import Verdict

Run = Callable[..., Any]
RIGHT = {"q9_1": "def twice(x):\n    return x + x", "q9_2": "def half(x):\n    return x * 0.5"}
CLASS = {
    "ada_secret": RIGHT,
    "ben_secret": {**RIGHT, "q9_2": "def half(x):\n    return 2.0 if x == 4.0 else x"},  # right in public alone
    "cy_secret": {**RIGHT, "q9_1": "def twice(x):\n    return x * 3"},
}
BONUS = """
# %% [markdown] question="q9_3"
# ## More
# Return the number.

# %% question="q9_3" points=10 minutes=5 difficulty=1 bonus=true
def same_number(x):
    \"\"\"x.\"\"\"
    # BEGIN SOLUTION
    return x
    # END SOLUTION

# %% [markdown] help="q9_3"
# symptom: it is another
#
# hint: none
#
# pseudo-code: return it
"""


@pytest.fixture(scope="module")
def graded(write_tiny: Callable[[Path], Path], commands: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    course = write_tiny(tmp_path_factory.mktemp("decided"))
    (course / "in").mkdir()
    for number, (student, answers) in enumerate(CLASS.items()):
        cells = [f'# %% question="{question}"\n{source}\n' for question, source in answers.items()]
        name = f"{student.partition('_')[0]}_{number}1_{number}7_hw9_tiny.py"  # as Canvas names them
        (course / "in" / name).write_text("\n".join([f"print('PRIVATE {student}')", *cells]))
    done = commands(course)("autograder", "grade", "in", "--assignment", "hw9", "--out", "out", "--jobs", "1")
    assert done.code == 0, done.err
    return course


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(graded, tmp_path / "copy")


def rows(course: Path) -> dict[str, dict[str, str]]:
    with open(course / "out" / "grades.csv", newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def case(name: str, verdict: Verdict, weight: float = 1) -> CaseResult:
    return CaseResult(name, name.partition("/")[0], "", False, weight, verdict, "", None, 0, 0.0)


def test_a_waiver_lowers_nobody_and_full_is_full_for_all() -> None:
    names = ("q1_1/test_a", "q1_1/test_b[x]", "q1_1/test_b[y]")
    passed, failed, broken = Verdict.PASSED, Verdict.FAILED, Verdict.INFRASTRUCTURE
    found = [(passed, failed, passed), (failed, passed, Verdict.ERROR), (Verdict.NOT_ANSWERED,) * 3]
    for verdicts in (*found, (passed, broken, failed)):
        cases = tuple(map(case, names, verdicts, (1, 2, 3)))
        plain = QuestionResult("q1_1", 12, cases)
        for name in (*names, "q1_1/test_b"):
            for how in ("full", "drop"):
                waived = QuestionResult("q1_1", 12, cases, waived=of_cases({name: Waiver(how, "")}, cases))
                assert plain.judged <= waived.judged <= 12
        assert QuestionResult("q1_1", 12, cases, waived=of_cases({"q1_1": Waiver("full", "")}, cases)).judged == 12
    cases = tuple(map(case, names, found[0]))
    dropped = QuestionResult("q1_1", 12, cases, waived=of_cases({"q1_1/test_b[x]": Waiver("drop", "")}, cases))
    assert dropped.judged == 12 and dropped.complete
    by_hand = QuestionResult("q1_1", 12, cases, hand=HandGrade(3), waived={"q1_1/test_a": Waiver("full", "")})
    assert by_hand.score == 3
    with pytest.raises(BadInput, match="Nothing of q1_1 would be left"):
        check("q1_1/test_b", "drop", {"q1_1/test_a": Waiver("drop", "")}, cases)
    with pytest.raises(BadInput, match="There is no case q1_1/test_c. Known: q1_1/test_a, q1_1/test_b"):
        check("q1_1/test_c", "full", {}, cases)


def test_a_waived_case_is_recorded_told_and_undone(course: Path, commands: Run) -> None:
    run, name = commands(course), "q9_2/test_half_of_anything"
    waive = ("autograder", "waive", "out", name)
    before = rows(course)
    assert run(*waive).code == 2 and run("autograder", "waive", "out", "q9_2/test_x", "--undo").code == 2
    told = run(*waive, "--how", "drop", "--why", "It asked too much.", "--dry-run")
    assert "ben_11  q9_2: 20 -> 40, total: 80 -> 100" in told.out and rows(course) == before, told.err
    assert not (course / "out" / "waivers.json").exists()
    told = run(*waive, "--how", "drop", "--why", "It asked too much.")
    assert told.code == 0 and "ada_01" not in told.out and rows(course)["ben_11"]["total"] == "100"
    (record,) = json.loads((course / "out" / "waivers.json").read_text())
    assert (record["case"], record["how"], record["why"], record["undone"]) == (name, "drop", "It asked too much.", "")
    assert "It asked too much." in (course / "out" / "feedback" / "ben_11.html").read_text()
    assert "No score changes." in run("autograder", "recompute", "out").out  # later commands know it
    run("autograder", "report", "out")
    assert "It asked too much." in (course / "out" / "report.html").read_text()
    told = run(*waive, "--undo")
    assert "ben_11  q9_2: 40 -> 20, total: 100 -> 80" in told.out and rows(course) == before
    (record,) = json.loads((course / "out" / "waivers.json").read_text())
    assert record["undone"]


def test_a_comment_is_on_the_page_and_pins_no_score(course: Path, commands: Run) -> None:
    run = commands(course)
    comment = ("autograder", "comment", "out")
    told = run(*comment, "ben_11", "Look at a = b, again", "--question", "q9_2")
    assert told.code == 0 and "No score changes." in told.out, told.err
    run(*comment, "ben_11", "See me.")
    page = (course / "out" / "feedback" / "ben_11.html").read_text()
    assert "Look at a = b, again" in page and "See me." in page and "A person gave this score." not in page
    change = ("autograder", "waive", "out", "q9_2", "--how", "full", "--why", "all")
    assert "ben_11  q9_2: 20 -> 40" in run(*change).out  # the judge's score is still the judge's
    told = run(*comment, "ben_11", "Good", "--question", "q9_2", "--score", "33")
    assert "ben_11  q9_2: 40 -> 33" in told.out
    assert run(*comment, "ben_11", "", "--question", "q9_2").code == 0
    assert (
        "Good" not in (course / "out" / "feedback" / "ben_11.html").read_text()
        and rows(course)["ben_11"]["q9_2"] == "33"
    )
    for wrong, why in (
        (("benn_11", "x"), "Is it ben_11"),
        (("ben_11", "x", "--question", "q9_7"), "no question q9_7"),
        (("ben_11", "x", "--question", "q9_2", "--score", "50"), "Give 0 to 40"),
        (("ben_11", "x", "--score", "5"), "--question"),
    ):
        told = run(*comment, *wrong)
        assert told.code == 2 and why in told.err
    with open(course / "out" / "by_hand.csv", "a") as sheet:
        sheet.write('"cy_21","page","","7","x",""\n')
    told = run("autograder", "recompute", "out")
    assert told.code == 2 and "a page has no score of its own" in told.err


def test_a_page_says_what_it_is_and_holds_nobody_else_s_data(course: Path) -> None:
    students = list(rows(course))
    assert students == ["ada_01", "ben_11", "cy_21"]
    for number, student in enumerate(students):
        page = (course / "out" / "feedback" / f"{student}.html").read_text()
        both = page + (course / "out" / "feedback" / f"{student}.json").read_text()
        assert not any(other in both for other in students if other != student)
        assert [f"PRIVATE {name}" in both for name in CLASS].count(
            True
        ) == 1 and f"PRIVATE {list(CLASS)[number]}" in both
        assert "100 of 100 points graded by machine" in page
        assert f'Graded file: <span class="file">{student.partition("_")[0]}_{number}1_{number}7_hw9_tiny.py' in page
        assert "on time" in page and "with version" in page and "suite" in page
        assert str(course.parent) not in both  # no path of the machine


def test_public_only_results_are_no_grades(course: Path, grade: Run, commands: Run) -> None:
    told = grade(course, "--public-only", out="quick")
    assert told.returncode == 0
    with open(course / "quick" / "grades.csv", newline="") as file:
        assert {row["status"] for row in csv.DictReader(file)} == {"public only"}
    assert "This is a preview, not a grade" in (course / "quick" / "feedback" / "ada_01.html").read_text()
    told = commands(course)("autograder", "export", "quick", "--to", "csv")
    assert told.code == 2 and "3 of 3 students were graded with --public-only" in told.err
    assert not (course / "quick" / "csv.csv").exists()
    assert "3 graded now" in grade(course, out="quick").stdout
    assert commands(course)("autograder", "export", "quick", "--to", "csv").code == 0


def test_pages_are_handed_back_in_three_layouts(course: Path, commands: Run) -> None:
    run = commands(course)
    assert run("autograder", "handback", "out", "--to", "pages").code == 0
    page = (course / "out" / "feedback" / "ben_11.html").read_bytes()
    assert (course / "pages" / "ben_11" / "hw9_tiny-feedback.html").read_bytes() == page
    assert run("autograder", "handback", "out", "--to", "zips", "--layout", "zips").code == 0
    with zipfile.ZipFile(course / "zips" / "ben_11.zip") as archive:
        assert archive.read("hw9_tiny-feedback.html") == page
    assert run("autograder", "handback", "out", "--to", "canvas.zip", "--layout", "canvas").code == 0
    with zipfile.ZipFile(course / "canvas.zip") as archive:
        assert sorted(archive.namelist())[1] == "ben_11_17_hw9_tiny-feedback.html"
        assert archive.read("ben_11_17_hw9_tiny-feedback.html") == page


def test_a_student_is_forgotten_and_what_is_not_reached_is_told(course: Path, commands: Run) -> None:
    run = commands(course)
    run("autograder", "comment", "out", "ben_11", "See me.")
    run("autograder", "report", "out")
    run("autograder", "export", "out", "--to", "csv")
    (course / "out" / "extensions.csv").write_text("student,until\nben_11,2026-11-20\nada_01,2026-11-21\n")
    (course / "out" / "notes.txt").write_text("ben_11 called.\n")
    told = run("autograder", "forget", "ben_11", "out")
    assert told.code == 1 and "still stands in: notes.txt" in told.out
    assert "gradebook" in told.out and "what was handed in" in told.out
    (course / "out" / "notes.txt").unlink()
    assert not [path for path in (course / "out").rglob("*") if path.is_file() and b"ben_11" in path.read_bytes()]
    assert list(rows(course)) == ["ada_01", "cy_21"] and (course / "out" / "feedback" / "ada_01.html").is_file()
    assert "ada_01" in (course / "out" / "extensions.csv").read_text()
    told = run("autograder", "forget", "ben_11", "out")
    assert told.code == 2 and "No student ben_11" in told.err
    assert [run("autograder", "forget", student, "out").code for student in ("ada_01", "cy_21")] == [0, 0]
    assert not (course / "out" / "grades.csv").exists() and not list((course / "out" / "feedback").iterdir())


def test_a_bonus_question_earns_points_on_top(course: Path, grade: Run, commands: Run) -> None:
    source = course / "solutions" / "hw9_tiny.py"
    source.write_text(source.read_text() + BONUS)
    suite = course / "autograder" / "suites" / "hw9_tiny"
    for part in ("public", "hidden"):
        text = (suite / part / "test_q9_1.py").read_text()
        (suite / part / "test_q9_3.py").write_text(text.replace("twice", "same_number").replace("8.0", "4.0"))
    with open(course / "in" / "ada_01_07_hw9_tiny.py", "a") as file:
        file.write('\n# %% question="q9_3"\ndef same_number(x):\n    return x\n')
    told = grade(course)
    assert told.returncode == 0, told.stderr
    assert rows(course)["ada_01"]["total"] == "110" and rows(course)["cy_21"]["total"] == "40"
    page = (course / "out" / "feedback" / "ada_01.html").read_text()
    assert "<strong>110</strong> of 100 points" in page and "10 / 10 bonus" in page
    assert commands(course)("autograder", "report", "out").code == 0


def test_results_of_another_homework_are_told_as_that(course: Path, commands: Run) -> None:
    journal = course / "out" / "results.jsonl"
    journal.write_text(journal.read_text().replace('"homework": "hw9_tiny"', '"homework": "hw8_other"'))
    told = commands(course)("autograder", "grade", "in", "--assignment", "hw9", "--out", "out")
    assert told.code == 2 and "out holds the results of hw8_other, not of hw9_tiny" in told.err


def test_a_regrade_of_one_question_waits_for_the_command_that_applies_it(course: Path, grade: Run) -> None:
    hidden = course / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_2.py"
    hidden.write_text(hidden.read_text().replace('same(half(x), reference.half(x), "the result")', "pass"))
    told = grade(course, "--regrade", "--question", "q9_2", "--dry-run").stdout
    assert "3 graded now" in told and "ben_11  q9_2: 20 -> 40, total: 80 -> 100" in told
    assert rows(course)["ben_11"]["total"] == "80" and (course / "out" / "regrade-q9_2.jsonl").is_file()
    told = grade(course, "--regrade", "--question", "q9_2").stdout
    assert ", 0 graded now" in told and "ben_11  q9_2: 20 -> 40" in told
    assert rows(course)["ben_11"] | {"q9_1": "60", "status": "graded"} == rows(course)["ben_11"]
    assert rows(course)["cy_21"]["q9_1"] == "0" and not (course / "out" / "regrade-q9_2.jsonl").exists()


def test_an_old_score_is_marked_until_it_is_brought_up_to_date(course: Path, grade: Run, commands: Run) -> None:
    hidden = course / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_2.py"
    hidden.write_text(hidden.read_text().replace('same(half(x), reference.half(x), "the result")', "pass"))
    assert commands(course)("autograder", "recompute", "out").code == 0
    assert {row["outdated"] for row in rows(course).values()} == {"q9_2"}
    assert "earlier version of the checks" in (course / "out" / "feedback" / "ben_11.html").read_text()
    grade(course)
    assert {row["outdated"] for row in rows(course).values()} == {""}
