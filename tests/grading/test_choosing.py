"""Which of a student's files is graded, what cannot be, and what is told about the rest."""

from __future__ import annotations

import io
import json
import os
import unicodedata
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder.builder.notebooks import student_cells
from autograder.errors import BadInput
from autograder.grading.collect import Collected, Handin, gather
from autograder.grading.outputs import page_names
from autograder.grading.roster import missing_and_unknown
from autograder.homework import Homework, read_homework
from autograder.submission import parse_submission

HW = "hw9_tiny"


@pytest.fixture
def homework(tiny: Path) -> Homework:
    return read_homework(HW, tiny / "solutions", tiny / "autograder" / "suites")


class Class:
    """A folder of submissions."""

    def __init__(self, folder: Path, homework: Homework) -> None:
        self.folder, self.homework = folder / "in", homework
        self.solved = nbformat.writes(nbformat.v4.new_notebook(cells=student_cells(homework, solved=True))).encode()
        self.stub = nbformat.writes(nbformat.v4.new_notebook(cells=student_cells(homework, solved=False))).encode()
        half = json.loads(self.solved)
        half["cells"] = [cell for cell in half["cells"] if "def half" not in "".join(cell["source"])]
        self.half = json.dumps(half).encode()

    def put(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def found(self) -> Collected:
        return gather(self.folder, self.homework)

    def one(self) -> Handin:
        self.put({f"zed/{HW}.ipynb": self.solved})  # a class has more than one
        entry, zed = self.found().entries
        assert zed.student == "zed" and not zed.assumptions
        return entry


@pytest.fixture
def group(tmp_path: Path, homework: Homework) -> Class:
    return Class(tmp_path, homework)


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("name", [f"{HW}_final", f"{HW} (1)", f"{HW}-2", "mine", "Copy of it"])
@pytest.mark.parametrize("worse", ["stub", "half"])
def test_of_one_attempt_the_notebook_that_answers_most_is_graded(group: Class, name: str, worse: str) -> None:
    group.put({f"ada/{HW}.ipynb": getattr(group, worse), f"ada/{name}.ipynb": group.solved})
    entry = group.one()
    assert entry.content == group.solved
    (one,) = entry.assumptions
    assert one.kind == "notebook" and one.student == "ada" and f"ada/{HW}.ipynb" in one.not_taken


def test_of_equal_notebooks_the_newest_is_graded_and_copies_are_not_told(group: Class) -> None:
    other = group.solved + b" "
    group.put({f"ada/{HW}.ipynb": group.solved, "ada/a.ipynb": other})
    os.utime(group.folder / "ada" / f"{HW}.ipynb", (1, 1))
    assert group.one().content == other
    group.put({"ada/a.ipynb": group.solved})
    assert not group.one().assumptions


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"doe_1_99990_{HW}.ipynb", f"doe_1_100004_{HW}-1.ipynb"),
        (f"doe_LATE_1_9_{HW}.zip", f"doe_1_10_{HW}-1.zip"),
        (f"ada/attempt_9/{HW}.ipynb", f"ada/attempt_10/{HW}.ipynb"),
        (f"ada/2026-11-09T10-00/{HW}.ipynb", f"ada/2026-11-10T09-00/{HW}.ipynb"),
        (f"ada/9/{HW}.ipynb", f"ada/10/{HW}.ipynb"),
    ],
)
def test_the_newest_attempt_is_found_by_number(group: Class, old: str, new: str) -> None:
    packed = {".zip": lambda content: zipped({f"{HW}.ipynb": content}), ".ipynb": lambda content: content}
    group.put({old: packed[Path(old).suffix](group.solved), new: packed[Path(new).suffix](group.half)})
    entry = group.one()
    assert entry.content == group.half
    assert [one.kind for one in entry.assumptions] == ["attempt"] and Path(old).stem in entry.assumptions[0].not_taken


@pytest.mark.parametrize("newest", [b"{", None])
def test_an_attempt_that_answers_nothing_is_none(group: Class, newest: bytes | None) -> None:
    group.put({f"doe_1_9_{HW}.ipynb": group.half, f"doe_1_10_{HW}-1.ipynb": newest or group.stub})
    entry = group.one()
    assert entry.content == group.half and "newest attempt that answers anything" in entry.assumptions[0].assumed


def test_canvas_files_of_different_names_are_one_attempt(group: Class) -> None:
    group.put({f"doe_1_10_{HW}.ipynb": group.solved, "doe_1_11_scratch.ipynb": group.half})
    entry = group.one()
    assert entry.content == group.solved and [one.kind for one in entry.assumptions] == ["notebook"]


@pytest.mark.parametrize("times", [("2026-11-10 10:00:00 +00:00", "2026-11-09 10:00:00 +00:00"), None])
def test_of_several_gradescope_submissions_the_newest_counts(group: Class, times: tuple[str, str] | None) -> None:
    made = [f"  :created_at: {time}\n" for time in times] if times else ["", ""]
    people = [f"submission_{n}:\n  :submitters:\n  - :sid: ada\n{told}" for n, told in zip((9, 10), made, strict=True)]
    group.put({"submission_metadata.yml": "".join(people).encode()})
    group.put({f"submission_9/{HW}.ipynb": group.half, f"submission_10/{HW}.ipynb": group.solved})
    (entry,) = group.found().entries
    assert entry.content == (group.half if times else group.solved)
    assert [one.kind for one in entry.assumptions] == ["attempt"]


def test_a_gradescope_submission_of_nobody_is_told(group: Class) -> None:
    group.put({"submission_metadata.yml": b"{}", f"submission_9/{HW}.ipynb": group.solved})
    (entry,) = group.found().entries
    assert entry.student == "submission_9" and [one.kind for one in entry.assumptions] == ["student"]


def test_moodle_s_folders_are_a_student_s(group: Class) -> None:
    group.put({f"Ann Byron_70_assignsubmission_file_/{HW}.ipynb": group.solved})
    group.put({"Ann Byron_70_assignsubmission_onlinetext_/onlinetext.html": b"hello"})
    group.put({"Bo Li_71_assignsubmission_file_mine.ipynb": group.half})
    entries = group.found().entries
    assert [entry.student.rpartition("-")[0] for entry in entries] == ["Ann_Byron_70", "Bo_Li_71"]
    assert [one.kind for one in entries[0].assumptions] == ["files"]


@pytest.mark.parametrize(
    ("name", "content", "status", "words"),
    [
        ("ada.pdf", b"%PDF", "no notebook", "only ada.pdf"),
        ("ada.docx", b"PK", "no notebook", "Hand in the .ipynb file itself"),
        ("ada/scan.jpg", b"", "no notebook", "only scan.jpg"),
        ("doe_1_2_essay.txt", b"", "no notebook", "only doe_1_2_essay.txt"),
        ("ada.zip", zipped({}), "empty", "The zip is empty"),
        ("ada.zip", zipped({"inner.zip": zipped({})}), "empty", "The zip is empty"),
        ("ada.zip", zipped({"report.pdf": b""}), "no notebook", "only report.pdf"),
        ("ada.zip", b"PK", "unreadable", "no zip, or a damaged one"),
        ("ada.ipynb", b"0" * (33 * 2**20), "too large", "Clear the outputs"),
    ],
)
def test_what_cannot_be_graded_is_an_entry_that_says_why(
    group: Class, name: str, content: bytes, status: str, words: str
) -> None:
    group.put({name: content, "zed.ipynb": group.solved})
    entry = group.found().entries[0]
    assert entry.content is None and entry.status == status and words in entry.problem


@pytest.mark.parametrize(
    "files",
    [
        {"ada.IPYNB": "solved"},
        {"ada.ipynb.txt": "solved"},
        {"ada.ipynb": "utf-16"},
        {"ada.zip": "zip in zip"},
        {"ada.zip": "script"},
        {"ada/nb.IPYNB": "solved"},
    ],
)
def test_what_can_be_graded_is(group: Class, files: dict[str, str]) -> None:
    content = {
        "solved": group.solved,
        "utf-16": group.solved.decode().encode("utf-16"),
        "zip in zip": zipped({"a/b.ZIP": zipped({"c.zip": zipped({f"{HW}.ipynb": group.solved})})}),
        "script": zipped({"answers.py": b"def twice(x): return 2 * x", "tests/q9_1.py": b""}),
    }
    group.put({name: content[kind] for name, kind in files.items()})
    entry = group.one()
    assert entry.content is not None and entry.suffix in (".ipynb", ".py") and entry.student == "ada"
    assert parse_submission(entry.content, entry.suffix, group.homework).answers


def test_zips_that_never_end_are_told(group: Class) -> None:
    packed = zipped({f"{HW}.ipynb": group.solved})
    for _ in range(6):
        packed = zipped({"deeper.zip": packed})
    group.put({"ada.zip": packed})
    assert "packed into each other" in group.one().problem


def test_files_that_are_not_read_are_told_and_those_of_the_course_are_not(group: Class) -> None:
    group.put({f"ada/{HW}.ipynb": group.solved, "ada/report.pdf": b"", "ada/utils.py": b"", "ada/README.md": b""})
    group.put({"ada/tests/q9_1.py": b"", "ada/course_utils/a.py": b"", "roster.csv": b"", "bob.ipynb": group.solved})
    found = group.found()
    (one,) = found.entries[0].assumptions
    assert one.kind == "files" and one.assumed == "2 other files were not read: ada/report.pdf, ada/utils.py."
    assert [one.assumed for one in found.assumptions] == ["These files are nobody's submission: roster.csv."]


def test_names_that_may_be_another_s_are_told_to_the_teacher_alone(group: Class) -> None:
    names = ["Kim", "kim", "Zo\u00eb", unicodedata.normalize("NFD", "Zo\u00eb"), "ada", "ada (1)", "ben"]
    group.put({f"{name}.ipynb": group.solved for name in names})
    entries = group.found().entries
    doubted = {entry.student for entry in entries if any(one.kind == "student" for one in entry.assumptions)}
    assert len(doubted) == 5 and "ada" not in doubted and "ben" not in doubted
    (kim,) = [entry.assumptions[0] for entry in entries if entry.student == "kim"]
    assert kim.not_taken == "Kim" and "Kim" not in str(kim.for_student)


def test_pages_have_names_that_no_file_system_takes_for_one() -> None:
    nfd = unicodedata.normalize("NFD", "zo\u00eb")
    pages = page_names(["Ada", "ada", "ben", "zo\u00eb", nfd])
    plain = {unicodedata.normalize("NFC", page).casefold() for page in pages.values()}
    assert len(plain) == 5 and pages["ben"] == "ben" and pages["Ada"].startswith("Ada-")


MOODLE = "Identifier,Full name,Email address\n"
CANVAS = "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"


@pytest.mark.parametrize(
    ("roster", "students", "missing", "unknown"),
    [
        ("student_id\nada\nbob\n", ["ada", "zed"], ["bob"], ["zed"]),
        ("Student ID;Name\nada;Ada\nbob;Bob\n", ["ada"], ["bob"], []),
        ("email\nAda@example.org\nbob@example.org\n", ["ada@example.org"], ["bob@example.org"], []),
        (f"{CANVAS}\"Doe, Jo\",1,S1,jo,A\n\"Roe, Al\",2,S2,al,A\n", ["doejo_1"], ["roeal_2"], []),
        (f"{CANVAS}\"Doe, Jo\",1,S1,jo,A\n\"Roe, Al\",2,S2,al,A\n", ["jo"], ["al"], []),
        ("First name,Surname,ID number,Email address\nAnn,Byron,7,a@b.c\nBo,Li,8,b@b.c\n", ["7"], ["8"], []),
        (f"{MOODLE}Participant 70,Ann Byron,a@b.c\n", ["Ann_Byron_70-a05f8b"], [], []),
        (f"{MOODLE}Participant 71,Ann Byron,a@b.c\n", ["Ann_Byron_70-a05f8b"], ["a@b.c"], None),
        ("First Name,Last Name,SID,Email\nAnn,Byron,7,a@b.c\n", ["a@b.c"], [], []),
    ],
)
def test_who_is_missing_follows_from_rosters_of_many_kinds(
    tmp_path: Path, roster: str, students: list[str], missing: list[str], unknown: list[str] | None
) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(roster)
    found = missing_and_unknown(path, students)
    assert found == (missing, students if unknown is None else unknown)


def test_a_roster_without_students_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("colour\nblue\n")
    with pytest.raises(BadInput, match="none of the columns"):
        missing_and_unknown(path, [])
