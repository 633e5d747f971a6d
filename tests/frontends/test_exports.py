"""Grades in the columns of other systems: quoted, complete, and with a word about everybody who does not fit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.frontends.exports import NBGRADER, export
from autograder.homework import read_homework

HOMEWORK = "hw1_attention"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `autograder grade` leaves, for three students."""
    folder = tmp_path_factory.mktemp("results")
    questions = [asked.id for asked in read_homework(HOMEWORK).graded]
    with open(folder / "grades.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student_id", *questions, "total", "status"])
        for student, total in (("ada@example.org", "94"), ("lovelace_4711", "60.5"), ("stray", "7")):
            table.writerow([student, *["1"] * len(questions), total, "graded"])
    (folder / "summary.json").write_text(json.dumps({"homework": HOMEWORK}))
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_canvas_gets_its_own_columns_back_with_the_assignment_filled_in(results: Path, tmp_path: Path) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,hw1_attention (99)\n"
        ",,,,,Manual Posting\n"
        "    Points Possible,,,,,100\n"
        '"Lovelace, Ada",4711,s1,al,"A, ""first""",\n'
        '"Byron, Ada",4712,s2,ADA@example.org,A,\n'
        '"Hopper, Grace",4713,s3,gh,A,\n'
    )
    done = export(results, "canvas", roster, tmp_path / "out.csv")
    table = rows(done.path)
    assert list(table[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "hw1_attention (99)"]
    assert table[0]["Student"].strip() == "Points Possible" and table[0]["hw1_attention (99)"] == "100"
    assert [row["hw1_attention (99)"] for row in table[1:]] == ["60.5", "94", ""]
    assert table[1]["Student"] == "Lovelace, Ada" and table[1]["Section"] == 'A, "first"'
    assert done.unknown == ["stray"] and done.missing == ["Hopper, Grace"] and done.rows == 3
    assert [row["total"] for row in rows(tmp_path / "out-unknown.csv")] == ["7"]


def test_canvas_may_separate_by_semicolons(results: Path, tmp_path: Path) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text("Student;ID;SIS User ID;SIS Login ID;Section\nLovelace, Ada;4711;s1;al;A\n")
    done = export(results, "canvas", roster, tmp_path / "out.csv")
    assert [row["hw1_attention"] for row in rows(done.path)] == ["100", "60.5"] and not done.missing


def test_gradescope_gets_totals_and_questions(results: Path, tmp_path: Path) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("First Name,Last Name,SID,Email\nAda,Byron,17,ada@example.org\n")
    (row,) = rows(export(results, "gradescope", roster, tmp_path / "out.csv").path)
    assert (row["SID"], row["Total Score"], row["Max Points"], row["Status"]) == ("17", "94", "100", "Graded")
    assert row["1: q1_1 (6.0 pts)"] == "1"


def test_a_name_is_no_formula_and_breaks_no_row(results: Path, tmp_path: Path) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_bytes(b'Student,ID,Section\n"=cmd|x!A0",4711,"A\r=1+1"\n"-Ada",-4712,+1\n')
    text = export(results, "canvas", roster, tmp_path / "out.csv").path.read_bytes().decode()
    assert "\r" not in text
    ada, other = rows(tmp_path / "out.csv")[1:]
    assert (ada["Student"], ada["Section"], other["Student"]) == ("'=cmd|x!A0", "A\n=1+1", "'-Ada")
    assert (other["ID"], other["Section"]) == ("-4712", "+1")  # numbers stay


@pytest.mark.parametrize("to", ["canvas", "gradescope", "csv", "nbgrader"])
def test_without_a_roster_everybody_is_there(results: Path, tmp_path: Path, to: str) -> None:
    done = export(results, to, None, tmp_path / "out.csv")
    text = done.path.read_text()
    assert done.rows == 3 and not done.unknown
    assert all(student in text for student in ("ada@example.org", "lovelace_4711", "stray"))
    if to == "nbgrader":
        assert tuple(rows(done.path)[0]) == NBGRADER and rows(done.path)[1]["score"] == "60.5"


def test_the_command_tells_who_is_unknown_and_fails(results: Path, tmp_path: Path, capsys) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("student_id\nada@example.org\nlovelace_4711\n")
    command = ["export", str(results), "--to", "csv", "--roster", str(roster), "--out", str(tmp_path / "out.csv")]
    assert main(command) == 1
    assert "not in the roster, see out-unknown.csv: stray." in capsys.readouterr().out
    assert main(["export", str(tmp_path), "--to", "csv"]) == 2
    roster.write_text("Colour\nblue\n")
    assert main(command) == 2 and "none of the columns" in capsys.readouterr().err
