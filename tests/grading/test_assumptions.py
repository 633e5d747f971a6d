"""The list "What was assumed", and how it is kept."""

from __future__ import annotations

import json
from pathlib import Path

from autograder.assumptions import KINDS, Assumption, in_order, told
from autograder.grading.by_hand import Sheet
from autograder.grading.journal import Class, Journal, Outcome, known


def test_few_are_told_one_by_one_and_many_of_a_kind_in_a_line() -> None:
    some = [Assumption("renamed", f"q1_{n}: told.", student=f"s{n:02}") for n in range(26)]
    lines = told([*some, Assumption("files", "Left out.", "a.pdf")], "out/summary.json").splitlines()
    assert lines[0] == "What was assumed (all of it: out/summary.json):"
    assert lines[1] == f"  26 times: {KINDS['renamed']} (s00, s01, s02 and 23 more)"
    assert lines[2] == "  Left out. Not taken: a.pdf." and len(lines) == 3
    assert told([], "") == "What was assumed: nothing."


def test_what_needs_a_look_comes_first() -> None:
    assert [one.kind for one in in_order(Assumption(kind, "") for kind in reversed(KINDS))] == list(KINDS)


def test_the_journal_keeps_them_and_reads_journals_without(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    one = Assumption("renamed", "q9_1: told.", "cell 1", "cell 2", "ada")
    ada = Outcome("ada", "ada.ipynb", "", {}, 0, "graded", assumptions=(one,))
    of_class = Class((Assumption("files", "Nobody's."),), ("ghost",))
    with Journal(path, "hw9_tiny") as journal:
        journal.add(ada)
        journal.add_class(of_class)
        journal.add_class(of_class)
    assert path.read_text().count("\n") == 2, "the same is not written again"
    with Journal(path, "hw9_tiny") as journal:
        assert journal.outcomes == {"ada": ada} and journal.of_class == of_class
        assert journal.everybody["ghost"].status == "missing"
    record = json.loads(path.read_text().splitlines()[0])
    del record["assumptions"]
    path.write_text(json.dumps(record) + "\n")
    assert known(path, "hw9_tiny")["ada"].assumptions == ()


def test_rows_that_people_wrote_and_that_change_nothing_are_told() -> None:
    row = {"question": "q9_1", "score": "", "comment": "", "points": "1", "answer": ""}
    rows = ({"student_id": "adda", "score": "3"}, {"student_id": "ada", "comment": "See me."}, {"student_id": "gone"})
    sheet = Sheet(rows=tuple(row | one for one in rows), lines=(2, 3, 4))
    misspelt, comment = sheet.assumptions(["ada", "ben"])
    assert misspelt.kind == "by hand" and misspelt.where == "by_hand.csv:2" and "Did you mean ada?" in str(misspelt)
    assert comment.kind == "comment" and comment.student == "ada"
    twice = Sheet(rows=tuple(row | {"student_id": "ada", "score": score} for score in "12"), lines=(2, 3))
    (one,) = twice.assumptions(["ada"])
    assert one.where == "by_hand.csv:2" and "line 3 is about the same, and counts" in str(one)
