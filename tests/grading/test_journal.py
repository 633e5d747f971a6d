"""The journal keeps what is closed, drops what a kill tore, and never loses a line when the disk is full."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.errors import BadInput
from autograder.grading.journal import Journal, Outcome
from autograder.judge.results import CaseResult, Diagnosis
from autograder.judge.verdicts import Verdict

CASE = CaseResult("q9_1/test_x", "q9_1", "It works.", True, 1.0, Verdict.FAILED, "no", "label", 0, 0.25)
OUTCOME = Outcome(
    "ada", "ada.ipynb", "d1", {"q9_1": "s1"}, 0, "graded", (CASE, replace(CASE, case="q9_1/test_y")),
    {"q9_1": Diagnosis("label", "Look here.")}, ("a note",), "printed", "bwrap", 1.5,
)  # fmt: skip


def reread(path: Path) -> dict[str, Outcome]:
    with Journal(path, "hw9_tiny") as journal:
        return dict(journal.outcomes)


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", "hw9_tiny") as journal:
        journal.add(OUTCOME)
        journal.add(replace(OUTCOME, student="bob"))
    assert reread(tmp_path / "results.jsonl") == {"ada": OUTCOME, "bob": replace(OUTCOME, student="bob")}


def test_cut_at_any_byte_the_journal_keeps_exactly_the_closed_submissions(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Journal(path, "hw9_tiny") as journal:
        journal.add(OUTCOME)
        closed = path.stat().st_size
        journal.add(replace(OUTCOME, student="bob"))
    whole = path.read_bytes()
    for cut in range(closed, len(whole)):
        path.write_bytes(whole[:cut])
        assert list(reread(path)) == ["ada"]
        assert path.stat().st_size == closed
        with Journal(path, "hw9_tiny") as journal:
            journal.add(replace(OUTCOME, student="bob"))
        assert path.read_bytes() == whole


def test_the_latest_outcome_of_a_student_counts(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", "hw9_tiny") as journal:
        journal.add(OUTCOME)
        journal.add(replace(OUTCOME, digest="d2"))
    assert reread(tmp_path / "results.jsonl")["ada"].digest == "d2"


def test_a_full_disk_is_told_and_leaves_the_journal_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.jsonl"
    with Journal(path, "hw9_tiny") as journal:
        journal.add(OUTCOME)
        before = path.read_bytes()
        real = os.write

        def nearly_full(file: int, data: memoryview) -> int:
            if len(data) < 500:
                raise OSError(28, "No space left on device")
            return real(file, data[:300])

        monkeypatch.setattr(os, "write", nearly_full)
        with pytest.raises(BadInput, match="No space left"):
            journal.add(replace(OUTCOME, student="bob"))
    assert path.read_bytes() == before


def test_the_journal_of_another_homework_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", "hw9_tiny") as journal:
        journal.add(OUTCOME)
    with pytest.raises(BadInput, match="holds the results of hw9_tiny, not of hw1_attention"):
        Journal(tmp_path / "results.jsonl", "hw1_attention")


def test_two_runs_never_write_one_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", "hw9_tiny") as journal:
        journal.add(OUTCOME)
        with pytest.raises(BadInput, match="Another run is writing"):
            Journal(tmp_path / "results.jsonl", "hw9_tiny")
    assert list(reread(tmp_path / "results.jsonl")) == ["ada"]


def test_a_journal_of_version_1_is_read_and_its_facts_count_as_outdated(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Journal(path, "hw9_tiny") as journal:
        journal.add(OUTCOME)
    records = [json.loads(line) | {"version": 1} for line in path.read_text().splitlines()]
    del records[-1]["suites"]
    records[-1]["suite"] = "s1"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with Journal(path, "hw9_tiny") as journal:
        journal.add(replace(OUTCOME, student="bob"))
    assert reread(path) == {"ada": replace(OUTCOME, suites={}), "bob": replace(OUTCOME, student="bob")}
    ada, bob = reread(path)["ada"], reread(path)["bob"]
    assert ada.suites.get("q9_1") != "s1" and bob.suites["q9_1"] == "s1" and bob.digest == "d1"
