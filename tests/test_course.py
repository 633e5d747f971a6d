"""`course.toml`: found, read, refused with a sentence; and an engine that knows no course's content."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.builder.reach import imported_modules
from autograder.builder.release import release_files
from autograder.course import FILE, find_course, read_course
from autograder.errors import BadInput
from autograder.homework import homework_names
from autograder.new_course import EXAMPLE
from autograder.places import PACKAGE, REPOSITORY, THE_COURSE

GOOD = 'name = "stats"\ntitle = "Statistics"\nrng = "numpy"\nstudent_packages = ["numpy"]\n'


def told(folder: Path, text: str) -> str:
    (folder / FILE).write_text(text)
    with pytest.raises(BadInput) as caught:
        read_course(folder / FILE, folder)
    assert str(caught.value).startswith(str(folder / FILE))
    return str(caught.value)


def test_a_new_course_needs_four_lines(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(GOOD)
    course = read_course(tmp_path / FILE, tmp_path)
    assert (course.suites, course.solutions, course.assignments) == ("suites", "solutions", "assignments")
    assert course.imports == {"math", "pytest", "course_utils", "__future__", "numpy"}
    assert course.box_packages == ("course_utils",) and course.page_rules == "warn"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace('"Statistics"', "Statistics"), "not valid TOML"),
        (GOOD.replace('rng = "numpy"\n', ""), "`rng` is missing"),
        (GOOD.replace("numpy", "jax", 1), "rng is 'jax'. Write one of torch, numpy"),
        (GOOD + "[limits]\nwall = 3\n", "unknown key `limits`. Use these: name, title, rng, student_packages"),
        (GOOD.replace('["numpy"]', '"numpy"'), 'Write it as a list of texts: student_packages = ["..."]'),
        (GOOD.replace('"stats"', "3"), 'Write it as a text: name = "..."'),
        (GOOD.replace('"stats"', '"Stats 1"'), "Use small letters"),
        (GOOD + 'suites = "../other"\n', "Name a folder below"),
        (GOOD + 'card = "no function"\n', 'Write "module:function"'),
        (GOOD + 'kits = ["a-kit"]\n', "Write it as in an import"),
        (GOOD + 'page_rules = "never"\n', "page_rules is 'never'. Write one of warn, refuse"),
    ],
)
def test_whatever_is_wrong_is_told_with_the_file_and_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    assert said in told(tmp_path, text)


def test_it_is_found_from_the_environment_then_from_the_folder_upward_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "stats" / "solutions"
    inside.mkdir(parents=True)
    (tmp_path / "stats" / FILE).write_text(GOOD)
    monkeypatch.delenv("AUTOGRADER_COURSE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert find_course(REPOSITORY).root == REPOSITORY
    monkeypatch.chdir(inside)
    assert find_course(REPOSITORY).root == tmp_path / "stats"
    monkeypatch.setenv("AUTOGRADER_COURSE", str(EXAMPLE))
    assert find_course(REPOSITORY).name == "numpy-course"
    monkeypatch.setenv("AUTOGRADER_COURSE", str(tmp_path))  # no course.toml: a copy of this repository's folders
    assert find_course(REPOSITORY).root == tmp_path and find_course(REPOSITORY).name == THE_COURSE.name
    monkeypatch.setenv("AUTOGRADER_COURSE", str(tmp_path / "gone"))
    with pytest.raises(BadInput, match="there is no such folder"):
        find_course(REPOSITORY)


def test_a_command_in_a_broken_course_says_so_and_exits_with_2(tmp_path: Path, commands: Callable[..., object]) -> None:
    (tmp_path / FILE).write_text(GOOD + 'colour = "blue"\n')
    done = commands(tmp_path)("autograder", "build")
    assert done.code == 2 and done.err.startswith(f"{tmp_path / FILE}: unknown key `colour`."), done.err
    (tmp_path / FILE).write_text(GOOD + 'kits = ["no_kit"]\n')
    done = commands(tmp_path)("autograder", "grade", ".", "--assignment", "hw1_x", "--out", "out")
    assert done.code == 2 and "there is no package no_kit. Make no_kit/__init__.py" in done.err, done.err


def test_new_course_refuses_a_folder_with_something_in_it(tmp_path: Path, commands: Callable[..., object]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    run = commands(REPOSITORY)
    done = run("autograder", "new", "course", "full", cwd=tmp_path)
    assert done.code == 2 and "not empty" in done.err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]
    done = run("autograder", "new", "course", "1x", cwd=tmp_path)
    assert done.code == 2 and "Begin the folder's name with a letter" in done.err and not (tmp_path / "1x").exists()


@pytest.mark.parametrize("name", homework_names())
def test_a_zip_ships_the_rooms_that_its_homework_imports(name: str) -> None:
    inside = {path.partition("/")[2] for path in release_files(name)}
    rooms = {path.split("/")[1] for path in inside if path.startswith("course_utils/") and path.count("/") > 1}
    assert {room for room in rooms if room.startswith("hw")} == {name.partition("_")[0]}
    assert rooms >= {"checking", "data", "explain", "instruments", "notebook", "terminal"}
    shipped = {path for path in inside if path.endswith(".py")}
    for path in shipped - {"course_utils/__init__.py"}:  # whatever is shipped finds what it imports
        for module in imported_modules((REPOSITORY / path).read_text()) if path.startswith("course_utils/") else ():
            place = module.replace(".", "/")
            assert {f"{place}.py", f"{place}/__init__.py"} & shipped, (path, module)


# What only this course knows: its homeworks, their rooms in course_utils, and what they are about.
CONTENT = re.compile(r"\bhw[1-5](?!\d)|course_utils\.hw|Transformer\b|\bViT\b|\bBLEU\b|[Ss]oftargmax|MultiHead")


def test_the_engine_knows_no_course_s_content() -> None:
    for path in sorted(PACKAGE.rglob("*")):
        inside = path.relative_to(PACKAGE)
        if path.suffix in {".py", ".j2", ".js", ".css"} and inside.parts[0] not in ("suites", "in_box"):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                assert not CONTENT.search(line), f"{inside}:{number} knows a course: {line.strip()}"
