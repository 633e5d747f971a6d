"""Every command in the guides is run and says what is shown there; those that cannot be are marked with a reason."""

from __future__ import annotations

import re
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from blocks import Block, Command, missing_line, read_blocks, uneven
from filling import fill
from scratch import HOMEWORK, lay_out

import course_utils.terminal.main
from autograder.builder.notebooks import student_cells
from autograder.cli import parser as autograder_parser
from autograder.homework import read_homework
from autograder.places import REPOSITORY

GUIDES = {path.name: path for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))}
OTHER_COURSE = "your-course.md"
RUN = ["instructor.md", "student.md", "authoring.md", "ta.md", "README.md", "privacy.md", OTHER_COURSE]
COMMITTED = {"solutions", "autograder", "assignments", "examples"}  # of the course itself
SHELL = re.compile(r"[|&;<>$*]")  # what only a shell understands
PARSERS = {"autograder": autograder_parser, "course": course_utils.terminal.main._parser}


def words(command: Command) -> list[str]:
    return shlex.split(command.text, comments=True)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One course for all guides: what one has graded, the next finds graded. Each could begin with a fresh one."""
    folder = tmp_path_factory.mktemp("guides") / "course"
    lay_out(folder)
    return folder


@pytest.fixture(scope="module")
def run(course: Path, commands: Callable[..., Callable[..., object]]) -> Callable[..., object]:
    return commands(course)


@pytest.fixture(scope="module")
def seen() -> dict[str, str]:
    """The guide in which a command was run first: word for word the same, it is not run for another one."""
    return {}


@pytest.mark.parametrize("name", RUN)
def test_the_commands_of_a_guide_do_what_it_says(
    name: str,
    course: Path,
    run: Callable[..., object],
    commands: Callable[..., Callable[..., object]],
    seen: dict[str, str],
) -> None:
    if name == OTHER_COURSE:
        run = commands(course, AUTOGRADER_COURSE="")  # found from the folder
    blocks = [block for block in read_blocks(GUIDES[name]) if block.reason is None]
    assert any(block.commands for block in blocks)
    place = hand_out(course, run) if name == "student.md" else course
    for block in blocks:
        if block.into:
            fill(course, block)
        for command in block.commands:
            argv = words(command)
            if argv[0] == "cd":
                place = place / argv[1]
                continue
            if seen.setdefault(shlex.join(argv), name) != name and not command.shown:
                continue
            done = run(*(["bash", "-c", command.text] if SHELL.search(command.text) else argv), cwd=place)
            where = f"{name}:{command.line}: {command.text}"
            assert done.code == command.code, f"{where}\n{done.out[-2000:]}\n{done.err[-3000:]}"
            assert name != "authoring.md" or argv[1] != "build" or "Warning" not in done.out, done.out
            line = missing_line(command.shown, said := f"{done.out}\n{done.err}")
            assert line is None, f"{where}\ndoes not say `{line}` (there, or in that order), but\n{said}"
    made = [path for path in course.iterdir() if path.name not in ("student", *COMMITTED)]
    asked = ["git", "check-ignore", "--no-index", "-q"]
    names = [f"{path.name}/" if path.is_dir() else path.name for path in made]
    seen_by_git = [each for each in names if subprocess.run([*asked, each], cwd=REPOSITORY).returncode == 1]
    assert name == OTHER_COURSE or not seen_by_git, f"{name} makes what .gitignore does not have: {seen_by_git}"


def test_figures_in_guides_add_up() -> None:
    for name, path in GUIDES.items():
        wrong = [line for block in read_blocks(path) for c in block.commands for line in c.shown if uneven(line)]
        assert not wrong, f"{name}: {wrong}"
    assert uneven("  ada  q1_7: 1.74 -> 3, total: 80.54 -> 81.7") and not uneven("  ada  q1_7: 1 -> 3, total: 8 -> 10")


def hand_out(course: Path, run: Callable[..., object]) -> Path:
    """The folder of a student who has unpacked the released zip and answered everything."""
    for arguments in (["build", HOMEWORK], ["release", HOMEWORK, "--out", "downloads"]):
        done = run("autograder", *arguments)
        assert done.code == 0, done.err
    with zipfile.ZipFile(course / "downloads" / f"{HOMEWORK}.zip") as archive:
        archive.extractall(course / "student")
    homework = read_homework(HOMEWORK, course / "solutions", course / "autograder" / "suites")
    path = course / "student" / HOMEWORK / f"{HOMEWORK}.ipynb"
    answers = {cell.id: cell.source for cell in student_cells(homework, solved=True)}
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        cell.source = answers[cell.id]
    nbformat.write(notebook, path)
    return path.parent


def marked() -> list[tuple[str, Block]]:
    return [(name, b) for name, path in GUIDES.items() for b in read_blocks(path) if b.reason is not None]


def test_what_is_not_run_has_a_reason_and_only_options_that_exist(run: Callable[..., object]) -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for name, block in marked():
        assert block.reason and len(block.reason.split()) >= 3, f"{name}:{block.line}: say why this is not run"
        for command in block.commands:
            argv, where = words(command), f"{name}:{command.line}: {command.text}"
            program = Path(argv[0]).name
            if program in PARSERS:
                try:
                    PARSERS[program]().parse_args(argv[1:])
                except SystemExit as ending:
                    assert not ending.code, where
            elif program == "make":
                assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in argv[1:]), where
            elif options := [word.partition("=")[0] for word in argv[1:] if word.startswith("-")]:
                said = run(program, *(word for word in argv[1:2] if not word.startswith("-")), "--help")
                assert all(option in said.out + said.err for option in options), f"{where}\n{said.out}{said.err}"


def test_a_shown_line_must_be_said_in_its_order_whatever_its_numbers() -> None:
    said = "3 submissions, 2 graded now, mean 81.3.\nOpen  out/report.html\n"
    assert missing_line(["17 submissions, 16 graded now, mean 70.", "...", "Open out/..."], said) is None
    assert missing_line(["Open out/...", "3 submissions"], said) == "3 submissions"
    assert missing_line(["3 submissions, 2 graded soon"], said) == "3 submissions, 2 graded soon"
    changed = "  ada  q1_7: 1.5 -> 3, total: 8 -> 9.5, final: 8 -> 9.5"
    assert missing_line(["  ada  q1_7: 1.5 -> 3, total: 80 -> 81.5"], changed) is None
    assert missing_line(["  ada  q1_7: 1.74 -> 3, total: 8 -> 9.5"], changed) is not None  # a figure that is stale


def test_commands_in_another_form_are_found(tmp_path: Path) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text("Text.\n\n    autograder build\n")
    with pytest.raises(ValueError, match="guide.md:3"):
        read_blocks(guide)
    guide.write_text("```console\nautograder build\n```\n")
    with pytest.raises(ValueError, match="guide.md:2"):
        read_blocks(guide)
