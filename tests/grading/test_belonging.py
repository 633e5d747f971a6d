"""A record is replaced only by what is certainly the same student's."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
RIGHT = """# %% question="q9_1"
def twice(x):
    return x + x

# %% question="q9_2"
def half(x):
    return x * 0.5
"""
EMPTY = '# %% question="q9_1"\nprint("nothing")\n'


@pytest.fixture(scope="module")
def first_run(
    write_tiny: Callable[[Path], Path], commands: Run, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A course whose class, a folder per student, was graded into `out/`; and its grades."""
    course = write_tiny(tmp_path_factory.mktemp("graded"))
    for student in ("alice", "bob", "carol"):
        put(course / "in" / student / "hw9_tiny.py", RIGHT)
    done = commands(course)("autograder", "grade", "in", "--assignment", "hw9_tiny", "--out", "out", "--jobs", "1")
    assert done.code == 0, done.err
    return course, (course / "out" / "grades.csv").read_text()


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def grade(first_run: tuple[Path, str], commands: Run) -> Run:
    course = first_run[0]

    def run(source: Path, *more: str) -> Any:
        return commands(course)(
            "autograder", "grade", str(source), "--assignment", "hw9_tiny", "--out", "out", "--jobs", "1", *more
        )

    return run


@pytest.fixture
def results(first_run: tuple[Path, str]) -> Any:
    """The results, put back afterwards."""
    course = first_run[0]
    shutil.copytree(course / "out", course / "kept")
    yield course / "out"
    shutil.rmtree(course / "out")
    (course / "kept").rename(course / "out")


def grades(results: Path) -> str:
    return (results / "grades.csv").read_text()


def handed_in(folder: Path, kind: str) -> Path:
    """What one student handed in, with other students' names inside."""
    inner = {
        "files": ["bob.py", "carol.py"],
        "folders": ["bob/hw9_tiny.py", "carol/hw9_tiny.py"],
        "nbgrader": ["submitted/bob/hw9_tiny/hw9_tiny.py"],
        "canvas": ["bob/hw9_tiny.py", "mallory_1_2_hw9_tiny.py"],
    }[kind]
    for name in inner:
        put(folder / name, EMPTY)
    return folder


@pytest.mark.parametrize("kind", ["files", "folders", "nbgrader", "canvas"])
@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
def test_names_inside_another_source_replace_nobody(
    results: Path, grade: Run, tmp_path: Path, kind: str, zipped: bool
) -> None:
    source = handed_in(tmp_path / "dave", kind)
    if zipped:
        source = Path(shutil.make_archive(str(tmp_path / "dave"), "zip", source))
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    done = grade(source)
    assert done.code == 2 and "bob" in done.err and "Nothing is written" in done.err
    assert before == {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}


def test_the_folder_of_one_student_in_the_class_is_theirs_whatever_it_holds(
    first_run: tuple[Path, str], results: Path, grade: Run
) -> None:
    course, before = first_run
    folder = course / "in" / "alice"
    put(folder / "bob.py", EMPTY)
    put(folder / "hw9_tiny.py", EMPTY)
    try:
        assert grade(folder).code == 0
        changed = set(before.splitlines()) ^ set(grades(results).splitlines())
        assert len(changed) == 2 and all(row.startswith("alice,") for row in changed)
        put(folder / "hw9_tiny.py", RIGHT)
        assert grade(folder).code == 0 and grades(results) == before  # and so it stays
        assert grade(course / "in").code == 0 and grades(results) == before
    finally:
        (folder / "bob.py").unlink()


def test_a_folder_in_the_class_that_is_nobody_s_is_refused(
    first_run: tuple[Path, str], results: Path, grade: Run
) -> None:
    course, before = first_run
    folder = handed_in(course / "in" / "dave", "files")
    try:
        done = grade(folder)
        assert done.code == 2 and "not one student's" in done.err and grades(results) == before
    finally:
        shutil.rmtree(folder)


def test_new_students_and_same_files_come_from_anywhere(results: Path, grade: Run, tmp_path: Path) -> None:
    before = grades(results)
    put(tmp_path / "late" / "dave.py", RIGHT)
    put(tmp_path / "late" / "bob.py", RIGHT)  # as it is known
    assert grade(tmp_path / "late").code == 0
    assert set(before.splitlines()) < set(grades(results).splitlines()) and "\ndave," in grades(results)
    put(tmp_path / "late" / "bob.py", EMPTY)  # no step towards being believed
    assert grade(tmp_path / "late").code == 2
    assert grade(tmp_path / "late", "--only", "dave").code == 0


def test_a_teacher_may_say_so(results: Path, grade: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "again.zip", "w") as archive:
        archive.writestr("bob/hw9_tiny.py", EMPTY)
        archive.writestr("carol/hw9_tiny.py", RIGHT)
    assert grade(tmp_path / "again.zip").code == 2
    before = grades(results)
    assert grade(tmp_path / "again.zip", "--replace").code == 0 and grades(results) != before
    assert grade(tmp_path / "again.zip").code == 0
