"""`make test` and `make quick`: no test is left out, none runs twice, and the fast ones start nothing."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from autograder.places import REPOSITORY


@pytest.fixture(scope="module")
def lanes() -> dict[str, Any]:
    return runpy.run_path(str(REPOSITORY / "tools" / "lanes"))


def files_of_tests() -> list[str]:
    tests = REPOSITORY / "tests"
    return [str(path.relative_to(REPOSITORY)) for path in (*tests.glob("test_*.py"), *tests.glob("*/test_*.py"))]


@pytest.mark.parametrize("anew", [False, True])
def test_every_file_of_tests_is_in_one_piece(lanes: dict[str, Any], anew: bool) -> None:
    commands = [command for _, command in lanes["pieces"](False, anew) if "pytest" in command]
    for file in files_of_tests():
        around = {file, str(Path(file).parent)}
        taken = [c for c in commands if around & set(c) and f"--deselect={file}" not in c]
        assert len(taken) == 1, f"{file} is in {len(taken)} pieces"


def test_all_suites_are_proved_again_only_where_that_is_asked_for(lanes: dict[str, Any]) -> None:
    for quick, anew in ((False, False), (True, False), (False, True)):
        pieces = dict(lanes["pieces"](quick, anew))
        assert {"lint", "types", "assignments", "suites"} <= pieces.keys()
        assert ("--anew" in pieces["suites"]) == anew


def test_fast_tests_start_no_box_browser_kernel_or_command(lanes: dict[str, Any]) -> None:
    fast = set(lanes["fast_tests"]())
    assert (
        {"tests/test_homework.py", "tests/grading/test_journal.py", "tests/students/test_work.py"}
        <= fast
        <= set(files_of_tests())
    )
    slow = {"tests/grading/test_run.py", "tests/browser/test_first_hour.py", "tests/box/test_walls.py"}
    slow |= {
        "tests/docs/test_docs.py",
        "tests/test_release.py",
        "tests/test_verify.py",
        "tests/attacks/test_attacks.py",
    }
    assert not slow & fast


def test_an_unknown_option_is_told(lanes: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert lanes["main"](["--fast"]) == 2
    assert "It takes --quick or --anew." in capsys.readouterr().err
