"""Finding submissions in folders, archives and the exports of learning platforms."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from autograder.errors import BadInput
from autograder.grading import collect as collecting
from autograder.grading.collect import collect

HW = "hw1_attention"


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def found(source: Path) -> dict[str, str]:
    return {entry.student: (entry.content or b"").decode() for entry in collect(source, HW)}


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["ada.ipynb", "bob.ipynb", "notes.txt"], ["ada", "bob"]),
        ([f"ada/{HW}.ipynb", f"bob/{HW}.ipynb"], ["ada", "bob"]),
        ([f"submitted/ada/{HW}/{HW}.ipynb", "submitted/ada/hw2_multihead/hw2_multihead.ipynb"], ["ada"]),
        ([f"ada/{HW}/{HW}.ipynb", f"ada/{HW}/timestamp.txt"], ["ada"]),
        ([f"doe_123_456_{HW}.ipynb", f"roe_LATE_77_88_{HW}-2.ipynb"], ["doe_123", "roe_77"]),
        (["ada.py"], ["ada"]),
        (["ada/renamed.ipynb"], ["ada"]),
        (["ada.ipynb", ".ipynb_checkpoints/bob.ipynb", "__MACOSX/._ada.ipynb"], ["ada"]),
    ],
)
def test_every_layout_is_understood_as_folder_and_as_zip(tmp_path: Path, names: list[str], students: list[str]) -> None:
    put(tmp_path / "in", *names)
    assert list(found(tmp_path / "in")) == students
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for name in names:
            archive.writestr(name, name)
    assert found(tmp_path / "in.zip") == found(tmp_path / "in")


def test_other_assignments_of_an_nbgrader_course_are_nobody_s_submission(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    for student, assignment in (("ada", HW), ("ada", "hw2_multihead"), ("ben", "hw2_multihead"), ("cat", "essay")):
        folder = tmp_path / "submitted" / student / assignment
        folder.mkdir(parents=True)
        (folder / f"{assignment}.ipynb").write_text("{}")
    assert [entry.student for entry in collect(tmp_path / "submitted", HW)] == ["ada"]


def test_a_gradescope_export_names_students_by_their_id_or_mail(tmp_path: Path) -> None:
    put(tmp_path, f"submission_1/{HW}.ipynb", f"submission_2/{HW}.ipynb")
    (tmp_path / "submission_metadata.yml").write_text(
        "submission_1:\n  :submitters:\n  - :name: A\n    :sid: '1001'\n    :email: a@example.org\n"
        "submission_2:\n  :submitters:\n  - :name: B\n    :email: b@example.org\n  - :sid: '1003'\n"
    )
    assert list(found(tmp_path)) == ["1001", "1003", "b@example.org"]


def test_of_several_files_the_one_named_after_the_homework_counts(tmp_path: Path) -> None:
    put(tmp_path, "ada/scratch.ipynb", f"ada/{HW}.ipynb", f"ada/{HW}.py")
    assert found(tmp_path) == {"ada": f"ada/{HW}.ipynb"}


def test_a_single_notebook_is_a_class_of_one(tmp_path: Path) -> None:
    put(tmp_path, "ada.ipynb")
    assert list(found(tmp_path / "ada.ipynb")) == ["ada"]


def test_links_and_paths_that_lead_out_of_an_archive_are_not_followed(tmp_path: Path) -> None:
    archive = tmp_path / "in.zip"
    with zipfile.ZipFile(archive, "w") as file:
        link = zipfile.ZipInfo("eve.ipynb")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
        file.writestr("../mallory.ipynb", "x")
        file.writestr("/abs.ipynb", "x")
        file.writestr("ada.ipynb", "x")
    assert list(found(archive)) == ["ada"]
    assert not (tmp_path.parent / "mallory.ipynb").exists()


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    put(tmp_path / "in", "ada.ipynb")
    os.symlink(tmp_path / "secret", tmp_path / "in" / "eve.ipynb")
    assert list(found(tmp_path / "in")) == ["ada"]


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ada.ipynb", b"0" * 40_000_000)
    (entry,) = collect(tmp_path / "in.zip", HW)
    assert entry.content is None and "larger than" in entry.problem
    monkeypatch.setattr(collecting, "MAX_TOTAL", 10**6)
    with pytest.raises(BadInput, match="unpacks to more"):
        collect(tmp_path / "in.zip", HW)


def test_a_zip_that_lies_about_its_sizes_is_still_bounded(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ada.ipynb", b"0" * 50_000_000)
    raw = buffer.getvalue().replace((50_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "in.zip").write_bytes(raw)
    (entry,) = collect(tmp_path / "in.zip", HW)
    assert entry.content is None or len(entry.content) <= 10


@pytest.mark.parametrize("name", ["nothing", "empty", "odd.zip", "other"])
def test_a_source_without_submissions_gets_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.zip").write_text("not a zip")
    put(tmp_path / "other", "readme.txt")
    with pytest.raises(BadInput):
        collect(tmp_path / name, HW)


def test_student_ids_are_harmless_as_file_names_and_in_spreadsheets(tmp_path: Path) -> None:
    put(tmp_path, "=cmd|calc.ipynb", "a b<script>.ipynb")
    for student in found(tmp_path):
        assert not set(student) & set("=|<> /\\")


def test_students_whose_ids_look_alike_when_made_harmless_stay_two(tmp_path: Path) -> None:
    put(tmp_path, "a b.ipynb", "a_b.ipynb", "a,b.ipynb")
    assert len(found(tmp_path)) == 3 and "a_b" in found(tmp_path)


def test_a_folder_of_zips_with_checkpoints(tmp_path: Path) -> None:
    for student, name in (("ada", "ada.zip"), ("Ben_77", "Ben_77_901_hw1.zip")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("hw1_attention/hw1_attention.ipynb", student)
            archive.writestr("hw1_attention/best.safetensors", b"weights of " + student.encode())
    (tmp_path / "cleo.zip").write_bytes(b"not a zip")
    found = {entry.student: entry for entry in collect(tmp_path, "hw1_attention")}
    assert set(found) == {"ada", "Ben_77", "cleo"}
    assert found["ada"].content == b"ada"
    assert found["Ben_77"].files_for("hw1_attention") == (("hw1_attention.safetensors", b"weights of Ben_77"),)
    assert found["cleo"].suffix == ".zip"


def test_checkpoints_in_a_shared_folder_go_by_the_students_name(tmp_path: Path) -> None:
    for student in ("ada", "ben"):
        (tmp_path / f"{student}.ipynb").write_text(student)
    (tmp_path / "ada.safetensors").write_bytes(b"1")
    found = {entry.student: entry.checkpoints for entry in collect(tmp_path, "hw1_attention")}
    assert found == {"ada": {"ada.safetensors": b"1"}, "ben": {}}


def test_a_checkpoint_that_is_too_large_is_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.grading.collect.MAX_CHECKPOINTS", 3)
    (tmp_path / "ada.ipynb").write_text("x")
    (tmp_path / "ada.safetensors").write_bytes(b"1234")
    (entry,) = collect(tmp_path, "hw1_attention")
    assert entry.content and not entry.checkpoints and "left out" in entry.notes[0]
