"""Grades in the columns of other systems: quoted, complete, and with a word about everybody who does not fit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.errors import BadInput
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


def graded(folder: Path, *students: str) -> Path:
    """Results of these students, whose totals count up from 1."""
    questions = [asked.id for asked in read_homework(HOMEWORK).graded]
    folder.mkdir()
    with open(folder / "grades.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student_id", *questions, "total", "status"])
        table.writerows(
            [student, *["0"] * len(questions), total, "graded"] for total, student in enumerate(students, 1)
        )
    (folder / "summary.json").write_text(json.dumps({"homework": HOMEWORK}))
    return folder


@pytest.mark.parametrize(
    "student",
    [
        "x_1002",
        "1002_x",
        "eri\u212a",
        "Erik",
        "ERIK",
        "erik_1002",
        "_1002",
        "er\u0131k",
        "erik\u0301",
        "erik ",
        "\uff45rik",
    ],
)
def test_who_is_not_called_exactly_so_gets_no_row(tmp_path: Path, student: str) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text('Student,ID,SIS User ID,SIS Login ID,Section\n"Blum, Eva",1002,s2,erik,A\n')
    done = export(graded(tmp_path / "results", student), "canvas", roster, tmp_path / "out.csv")
    assert done.unknown == [student] and done.missing == ["Blum, Eva"] and not done.refused
    assert rows(done.path)[1]["hw1_attention"] == ""


def test_a_stranger_costs_nobody_their_row(tmp_path: Path) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text('Student,ID,SIS User ID,SIS Login ID,Section\n"Müller, Eva",1002,s2,em,A\nAda,7,s3,ada@x.org,A\n')
    results = graded(tmp_path / "results", "x_1002", "mullereva_1002", "ada@X.org")
    done = export(results, "canvas", roster, tmp_path / "out.csv")
    assert [row["hw1_attention"] for row in rows(done.path)[1:]] == ["2", "3"] and done.unknown == ["x_1002"]


@pytest.mark.parametrize(
    ("people", "students"),
    [
        (['"Blum, Eva",1002,s2,eva', "Ada,1003,s3,ada"], ["eva", "1002", "ada"]),  # two grades of one person
        (['"Blum, Eva",1002,eva,x', "Eve,1004,s4,eva", "Ada,1003,s3,ada"], ["eva", "ada"]),  # one grade of two people
        (['"Blum, Eva",1002,s2,eva', '"Blum, Eva",1002,s2,eva', "Ada,1003,s3,ada"], ["eva", "ada"]),  # a row twice
        (["Eva,1002,s2,eva@x.org", "Ada,1003,s3,ada"], ["eva@x.org", "EVA@x.org", "ada"]),
    ],
)
@pytest.mark.parametrize("to", ["canvas", "gradescope", "csv", "nbgrader"])
def test_who_cannot_be_told_apart_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], people: list[str], students: list[str], to: str
) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text("\n".join(["Student,ID,SIS User ID,SIS Login ID", *people]) + "\n")
    command = ["export", str(graded(tmp_path / "results", *students)), "--to", to, "--roster", str(roster)]
    assert main([*command, "--out", str(tmp_path / "out.csv")]) == 1
    told = capsys.readouterr().out
    assert "Left out" in told and "Eva" in told and "1 rows" in told
    assert str(len(students)) in rows(tmp_path / "out.csv")[-1].values()  # Ada's
    kept = {row["student_id"] for row in rows(tmp_path / "out-unknown.csv")}
    assert kept == set(students) - {"ada"}


def test_canvas_s_own_column_is_found_or_chosen(results: Path, tmp_path: Path, capsys) -> None:
    def head(*columns: str, chosen: str | None = None) -> tuple[str, list[str]]:
        (tmp_path / "canvas.csv").write_text(
            ",".join(["Student,ID,SIS Login ID,Section", *columns]) + "\n"
            + ",".join(["    Points Possible,,,", *["90"] * len(columns)]) + "\n"
            + '"Byron, Ada",4712,ada@example.org,A' + "," * len(columns) + "\n"
        )  # fmt: skip
        done = export(results, "canvas", tmp_path / "canvas.csv", tmp_path / "out.csv", chosen)
        return list(rows(done.path)[0])[-1], done.notes

    column, notes = head("HW1 Attention (48213)", "HW2 Multihead (48214)")
    assert column == "HW1 Attention (48213)" and rows(tmp_path / "out.csv")[0][column] == "90"
    assert "Column: HW1 Attention (48213)." in notes
    assert any("90 points possible in HW1 Attention (48213), the homework 100" in note for note in notes)
    assert head("Homework 1 (5)", "Homework 10 (6)")[0] == "Homework 1 (5)"
    column, notes = head("Essay (7)", "Talk (8)")
    assert column == HOMEWORK and any("new assignment" in note and "Essay (7); Talk (8)" in note for note in notes)
    assert head("Essay (7)", "Talk (8)", chosen="8")[0] == head("Essay (7)", "Talk (8)", chosen="talk")[0] == "Talk (8)"
    with pytest.raises(BadInput, match="Several columns of the roster may be hw1_attention"):
        head("HW1 (5)", "HW1 again (6)")
    with pytest.raises(BadInput, match="`Exam` is no single column"):
        head("Essay (7)", chosen="Exam")


def test_points_that_nobody_has_graded_are_told_and_names_are_joined_plainly(tmp_path: Path, capsys) -> None:
    questions = [asked.id for asked in read_homework(HOMEWORK).graded]
    with open(tmp_path / "grades.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student_id", *questions, "total", "penalty", "final", "status"])
        table.writerow(["al", *["1"] * (len(questions) - 1), "", "94", "9.4", "84.6", "graded"])
    (tmp_path / "summary.json").write_text(json.dumps({"homework": HOMEWORK}))
    (tmp_path / "canvas.csv").write_text(
        'Student,ID,SIS Login ID\n"Lovelace, Ada",1,al\n"Hopper, Grace",2,gh\n"Turing, Alan",3,at\n'
    )
    arguments = ["export", str(tmp_path), "--roster", str(tmp_path / "canvas.csv"), "--to", "canvas"]
    assert main([*arguments, "--out", str(tmp_path / "out.csv")]) == 0
    told = capsys.readouterr().out
    assert "Not graded yet, and not in the scores: up to 3 points (q1_15 of 1 students)." in told
    assert "without a submission: Hopper, Grace; Turing, Alan." in told
    assert [row[HOMEWORK] for row in rows(tmp_path / "out.csv")] == ["100", "84.6", "", ""]
