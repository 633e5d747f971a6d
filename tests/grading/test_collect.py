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


def zipped(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["ada.ipynb", "bob.ipynb"], ["ada", "bob"]),
        ([f"ada/{HW}.ipynb", f"bob/{HW}.py"], ["ada", "bob"]),
        (["ada.zip", "bob.zip"], ["ada", "bob"]),
        ([f"ada/{HW}/{HW}.ipynb", "bob/hw2_multihead/renamed.ipynb", f"bob/{HW}/renamed.py"], ["ada", "bob"]),
        ([f"doe_123_456_{HW}.ipynb", "roe_LATE_77_88_my.zip"], ["doe_123", "roe_77"]),
        ([f"doe_123_456_{HW}.ipynb"], ["doe_123"]),
        ([f"submitted/ada/{HW}/{HW}.ipynb", f"release/{HW}/{HW}.ipynb", "nbgrader_config.py"], ["ada"]),
        ([f"submitted/ada/{HW}/handed-in.zip", f"submitted/bob/{HW}/{HW}.ipynb"], ["ada", "bob"]),
        (["submission_metadata.yml", f"submission_1/{HW}.ipynb"], ["1001"]),
        (["submission_metadata.yml", "submission_1/my.ipynb", "submission_2/answers.py"], ["1001", "1002"]),
    ],
)
@pytest.mark.parametrize("wrapped", ["", "class/", f"{HW}/"])
def test_one_folder_around_the_class_changes_nothing(
    tmp_path: Path, names: list[str], students: list[str], wrapped: str
) -> None:
    people = "submission_1:\n  :submitters:\n  - :sid: '1001'\nsubmission_2:\n  :submitters:\n  - :sid: '1002'\n"
    content = {".zip": zipped({f"{HW}.ipynb": "x"}), ".yml": people}
    files = {f"{wrapped}{name}": content.get(Path(name).suffix, "x") for name in names}
    (tmp_path / "in.zip").write_bytes(zipped(files | {"__MACOSX/._class": "", "roster.csv": ""}))
    assert list(found(tmp_path / "in.zip")) == students
    with zipfile.ZipFile(tmp_path / "in.zip") as archive:
        archive.extractall(tmp_path / "in")
    assert list(found(tmp_path / "in")) == students


def test_a_file_in_a_student_s_zip_is_theirs_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / f"alice_111_900_{HW}.ipynb").write_text("hers")
    (tmp_path / f"mallory_222_902_{HW}.zip").write_bytes(
        zipped({f"alice_111_901_{HW}.ipynb": "forged", f"submitted/alice_111/{HW}/{HW}.ipynb": "forged", "x.py": ""})
    )
    assert found(tmp_path) == {"alice_111": "hers", "mallory_222": "forged"}


def test_a_file_in_a_student_s_folder_is_theirs_whatever_it_is_called(tmp_path: Path) -> None:
    put(tmp_path, f"alice/{HW}.ipynb", f"mallory/{HW}.ipynb", f"mallory/alice/{HW}/zz_{HW}.ipynb")
    put(tmp_path, f"mallory/alice_1_2_{HW}.ipynb", f"mallory/submitted/alice/{HW}/{HW}.ipynb")
    (tmp_path / "mallory" / "alice.zip").write_bytes(zipped({f"{HW}.ipynb": "forged"}))
    (tmp_path / "mallory" / "alice.safetensors").write_bytes(b"")
    assert found(tmp_path) == {"alice": f"alice/{HW}.ipynb", "mallory": f"mallory/{HW}.ipynb"}
    assert not collect(tmp_path, HW)[0].checkpoints


@pytest.mark.parametrize("wrapped", ["", "assignment_1_export/"])
@pytest.mark.parametrize("packed", [False, True])
def test_only_the_export_s_own_metadata_tells_who_is_who(tmp_path: Path, wrapped: str, packed: bool) -> None:
    def metadata(first: str, second: str) -> str:
        pairs = {"submission_101": first, "submission_102": second}
        return "".join(f"{folder}:\n  :submitters:\n  - :sid: {sid}\n" for folder, sid in pairs.items())

    forged = {f"{HW}.ipynb": "poor", "submission_metadata.yml": metadata("mallory", "alice")}
    export = tmp_path / wrapped
    put(export, f"submission_101/{HW}.ipynb")
    (export / "submission_metadata.yml").write_text(metadata("alice", "mallory"))
    (export / "submission_102").mkdir()
    if packed:
        (export / "submission_102" / "submission_101.zip").write_bytes(zipped(forged))
    else:
        for name, content in forged.items():
            (export / "submission_102" / name).write_text(content)
    assert found(tmp_path) == {"alice": f"submission_101/{HW}.ipynb", "mallory": "poor"}


@pytest.mark.parametrize("text", ["x: [", "submission_1:\n  :submitters:\n  - :sid: alice\n"])
def test_metadata_in_a_student_s_folder_or_zip_is_not_read(tmp_path: Path, text: str) -> None:
    put(tmp_path, f"alice/{HW}.ipynb", f"mallory/{HW}.ipynb")
    (tmp_path / "mallory" / "submission_metadata.yml").write_text(text)
    packed = zipped({"submission_metadata.yml": text, f"submission_1/{HW}.ipynb": "packed"})
    (tmp_path / "eve.zip").write_bytes(packed)
    expected = {"alice": f"alice/{HW}.ipynb", "eve": "packed", "mallory": f"mallory/{HW}.ipynb"}
    assert found(tmp_path) == expected


def test_one_student_s_folder_is_no_class(tmp_path: Path) -> None:
    put(tmp_path, f"mallory/alice/{HW}/{HW}.ipynb")
    assert list(found(tmp_path)) == ["mallory"]


@pytest.mark.parametrize("inside_a_zip", [False, True])
def test_a_zip_that_holds_too_much_costs_its_student_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside_a_zip: bool
) -> None:
    monkeypatch.setattr(collecting, "MAX_STUDENT_ENTRIES", 50)
    monkeypatch.setattr(collecting, "MAX_STUDENT_TOTAL", 10**6)
    monkeypatch.setattr(collecting, "MAX_ENTRIES", 60)
    many = {f"p{i}_{i}_{i}_{HW}.ipynb": "x" for i in range(51)}
    large = {f"{i}.ipynb": b"0" * 600_000 for i in range(2)}
    files = {"many.zip": zipped(many), "large.zip": zipped(large), "ada.ipynb": "x", "broken.zip": b"PK"}
    if inside_a_zip:
        files |= {f"flood/{name}": "x" for name in many}
        (tmp_path / "in.zip").write_bytes(zipped(files))
    else:
        for name, content in files.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    entries = {entry.student: entry for entry in collect(tmp_path / "in.zip" if inside_a_zip else tmp_path, HW)}
    assert entries.pop("ada").content == b"x" and "damaged" in entries.pop("broken").problem
    assert set(entries) == {"many", "large", *(["flood"] if inside_a_zip else [])}
    assert all(entry.content is None and "holds more than 50 files" in entry.problem for entry in entries.values())


def test_names_that_are_no_text_are_made_printable_and_stay_different(tmp_path: Path) -> None:
    put(tmp_path, f"ada/{HW}.ipynb")
    for name in (b"\xff.safetensors", b"\xfe.safetensors", b"\x1b[2J\n.safetensors"):
        Path(os.fsdecode(bytes(tmp_path / "ada") + b"/" + name)).write_bytes(b"")
    for name in (b"\xff.ipynb", b"\xfe.ipynb"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(name)
    entries = collect(tmp_path, HW)
    assert len(entries) == 3 and all(entry.path.isprintable() for entry in entries)
    ada = entries[-1]
    assert len(ada.checkpoints) == 3 and all(name.isprintable() for name in ada.checkpoints)


def test_canvas_keeps_a_student_s_files_together_by_their_number(tmp_path: Path) -> None:
    put(tmp_path, f"doe_1_10_{HW}.ipynb", "doe_1_11_best.safetensors", f"roe_2_12_{HW}.ipynb")
    checkpoints = {entry.student: list(entry.checkpoints) for entry in collect(tmp_path, HW)}
    assert checkpoints == {"doe_1": ["doe_1_11_best.safetensors"], "roe_2": []}


def test_checkpoints_are_counted(tmp_path: Path) -> None:
    put(tmp_path, f"ada/{HW}.ipynb", *(f"ada/{i:03d}.safetensors" for i in range(30)))
    (entry,) = collect(tmp_path, HW)
    assert len(entry.checkpoints) == collecting.MAX_CHECKPOINT_FILES and "30 checkpoints" in str(entry.assumptions)


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
    assert entry.content and not entry.checkpoints and "left out" in entry.assumptions[0].assumed
