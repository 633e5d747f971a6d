"""The Gradescope bundle in a copy of Gradescope's folders, run as Gradescope does: as root, without bubblewrap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.frontends.gradescope_run import Settings, _tests, seconds_late
from autograder.frontends.judged import Judging
from autograder.grading.collect import best_in
from autograder.homework import read_homework

HOMEWORK = "hw9_tiny"
VISIBILITY = {"visible", "after_due_date", "after_published", "hidden"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
TOP = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
       "stdout_visibility", "extra_data", "tests", "leaderboard"}  # fmt: skip
TEST = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
        "visibility", "extra_data"}  # fmt: skip
PEEK = "import os, sys; os.setuid(65534); open(sys.argv[1]).read()"  # as a user without rights


def follows_the_specification(results: dict[str, Any]) -> None:
    """Gradescope's docs/specs.md."""
    assert set(results) <= TOP and isinstance(results.get("score"), int | float)
    assert {results[key] for key in results if key.endswith("_format")} <= FORMATS
    assert {results[key] for key in results if key.endswith("visibility")} <= VISIBILITY
    for test in results.get("tests", []):
        assert set(test) <= TEST and test["visibility"] in VISIBILITY
        assert test.get("status", "passed") in ("passed", "failed")
        assert 0 <= test.get("score", 0) <= test.get("max_score", 0)


@pytest.fixture
def container(built: Path) -> Iterator[Path]:
    """The folder /autograder of a container, with the bundle unpacked as Gradescope does; open to all users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in ("source", "submission", "results"):
        (folder / name).mkdir()
    with zipfile.ZipFile(built / "out" / f"{HOMEWORK}-gradescope.zip") as bundle:
        bundle.extractall(folder / "source")
    shutil.copy(folder / "source" / "run_autograder", folder)
    (folder / "run_autograder").chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def metadata(
    container: Path, created: str = "2026-11-10T10:00:00.000000-08:00", scores: tuple[float, ...] = ()
) -> None:
    told = {
        "id": 1,
        "created_at": created,
        "assignment": {"due_date": "2026-11-10T12:00:00.000000-08:00", "total_points": "100.0"},
        "users": [{"id": 1, "name": "Ada", "email": "ada@example.org"}],
        "previous_submissions": [
            {"submission_time": f"2026-11-0{day}T10:00:00.000000-08:00", "score": score, "autograder_error": False}
            for day, score in enumerate(scores, 1)
        ],
    }
    (container / "submission_metadata.json").write_text(json.dumps(told))


def grade(container: Path, course, **more: str) -> dict[str, Any]:
    course.run(str(container / "run_autograder"), cwd=container, AUTOGRADER_PYTHON=sys.executable, **more)
    results = json.loads((container / "results" / "results.json").read_text())
    follows_the_specification(results)
    return results


@pytest.mark.skipif(os.geteuid() != 0, reason="Gradescope's containers run as root")
def test_as_root_without_bubblewrap_the_box_is_a_user_who_sees_no_tests(course, container: Path) -> None:
    spy = f"import os\nfound = [n for _, _, names in os.walk({str(container)!r}) for n in names if 'q9_' in n]\n"
    spy += "raise RuntimeError(f'seen {found} as {os.getuid()}')"
    notebook = json.loads((course.path / "class" / "ben.ipynb").read_text())
    notebook["cells"].insert(0, {"cell_type": "code", "id": "spy", "metadata": {}, "outputs": [],
                                 "execution_count": None, "source": spy})  # fmt: skip
    (container / "submission" / "my notebook.ipynb").write_text(json.dumps(notebook))
    metadata(container, created="2026-11-11T12:30:00.000000-08:00")
    results = grade(container, course, AUTOGRADER_SANDBOX="process")
    assert results["extra_data"]["box"] == "process" and results["extra_data"]["questions"] == {"q9_1": 60, "q9_2": 0}
    assert "seen [] as" in results["output"] and "as 0" not in results["output"]
    assert results["score"] == 60 - 12 and "Late by 24.5 hours: 12 of 60 points" in results["output"]
    by_name = {test["name"]: test for test in results["tests"]}
    assert by_name["q9_2: half(4) is 2.0."]["visibility"] == "visible"
    assert by_name["q9_2: half works for any number."]["visibility"] == "after_published"
    assert "Two halves." in by_name["q9_3: graded by a person"]["output"]
    for secret in (f"solutions/{HOMEWORK}.py", "autograder/__init__.py", "../../submission_metadata.json"):
        path = container / "source" / "course" / secret
        assert path.is_file()
        peek = subprocess.run([sys.executable, "-S", "-c", PEEK, str(path)], capture_output=True, text=True)
        assert "PermissionError" in peek.stderr, secret


def test_what_is_not_graded_is_told_and_a_fault_of_ours_costs_nobody_a_point(container: Path, course) -> None:
    metadata(container, scores=(10, 80, 40))
    results = grade(container, course)
    assert results["score"] == 40 and "3 of 3 attempts" in results["output"]

    metadata(container, scores=(10,))
    (container / "submission" / "essay.txt").write_text("hello")
    results = grade(container, course)
    assert results["score"] == 0 and f"Hand in {HOMEWORK}.ipynb" in results["output"]

    (container / "results" / "results.json").unlink()
    shutil.copy(course.path / "class" / "ada.ipynb", container / "submission")
    options = {"AUTOGRADER_PYTHON": sys.executable, "AUTOGRADER_SANDBOX": "glass"}
    told = course.run(str(container / "run_autograder"), cwd=container, fails=True, **options)
    assert "no sandbox called glass" in told.stderr and "Traceback" not in told.stderr
    assert not (container / "results" / "results.json").exists()


@pytest.mark.parametrize(("how", "of"), [("full", 3), ("drop", 2)])
def test_a_waived_case_reads_as_it_counts(how: str, of: int) -> None:
    case = {"sentence": "It works.", "public": True, "weight": 1.0, "verdict": "passed", "message": "", "waived": None}
    waived = case | {"verdict": "failed", "waived": {"how": how, "why": "It asked for more than the text."}}
    question = {"question": "q9_1", "points": 3, "text": None, "mistake": None, "cases": [case, waived, case]}
    tests = _tests(question | {"judged": 3, "by_cases": 3, "once": ""}, Settings(HOMEWORK))
    assert [test["score"] for test in tests] == [3 / of] * of


def test_what_one_mistake_gives_back_is_an_entry_so_that_all_add_up_to_the_score() -> None:
    case = {"sentence": "It works.", "public": True, "weight": 1.0, "verdict": "passed", "message": "", "waived": None}
    failed = case | {"verdict": "failed", "variation": "", "id": "ada/q9_1/test"}
    question = {"question": "q9_1", "points": 10, "text": None, "mistake": "wrong-axis", "cases": [case, *[failed] * 4]}
    tests = _tests(question | {"judged": 6, "by_cases": 2, "once": "One mistake explains all."}, Settings(HOMEWORK))
    assert sum(test["score"] for test in tests) == 6 and sum(test["max_score"] for test in tests) == 10
    assert tests[-1]["output"] == "One mistake explains all."


def test_what_was_decided_comes_along(course, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    told = [{"case": "q9_2", "how": "full", "why": "It asked for more than the text.", "at": "2026-11-10"}]
    (results / "waivers.json").write_text(json.dumps(told))
    (results / "times.csv").write_text("student,handed_in\nada,2026-11-10\n")
    course.autograder(f"gradescope {HOMEWORK} --out bundle --decided {results}")
    with zipfile.ZipFile(course.path / "bundle" / f"{HOMEWORK}-gradescope.zip") as bundle:
        settings = json.loads(bundle.read("settings.json"))
    assert set(settings["decided"]) == {"waivers.json"}  # and nothing about students
    file, where = course.path / "class" / "ben.ipynb", str(course.path)
    page = Judging(HOMEWORK, file, course=where, decided=settings["decided"]).feedback()
    assert page["total"] == 60 + 37  # q9_2 is wrong in it


def test_the_bundle_holds_one_homework_and_no_class(container: Path) -> None:
    source = container / "source"
    assert [path.name for path in (source / "course" / "solutions").iterdir()] == [f"{HOMEWORK}.py"]
    suites = source / "course" / "autograder" / "suites"
    assert [path.name for path in suites.iterdir() if path.is_dir()] == [HOMEWORK]
    assert [path.name for path in (source / "course" / "assignments" / HOMEWORK / "tests").iterdir()]  # fingerprints
    assert not (source / "course" / "examples").exists() and not (source / "course" / "tests").exists()


def test_the_notebook_named_after_the_homework_is_graded_where_none_answers_more(tiny: Path) -> None:
    homework = read_homework(HOMEWORK, tiny / "solutions", tiny / "autograder" / "suites")
    folder = tiny / "submission"
    assert best_in(folder, homework) == (None, [])
    for name in ("zzz.ipynb", "helper.py", "my hw9_tiny copy.ipynb", ".ipynb_checkpoints/hw9_tiny.ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    assert best_in(folder, homework)[0] == folder / "my hw9_tiny copy.ipynb"
    cell = {"cell_type": "code", "source": "def twice(x): return 2 * x", "metadata": {}}
    (folder / "zzz.ipynb").write_text(json.dumps({"cells": [cell]}))
    best, (assumed,) = best_in(folder, homework)
    assert best == folder / "zzz.ipynb" and "my hw9_tiny copy.ipynb" in assumed.not_taken


def test_a_student_s_own_due_date_comes_first() -> None:
    told = {
        "created_at": "2026-11-10T13:00:00.000000-08:00",
        "assignment": {"due_date": "2026-11-10T12:00:00.000000-08:00"},
        "users": [{"assignment": {"due_date": "2026-11-10T12:30:00.000000-08:00"}}],
    }
    assert seconds_late(told) == 1800
    assert seconds_late({"created_at": None}) == 0
