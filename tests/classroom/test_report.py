"""The class report: numbers from known facts, names of those who need a person, and a page that a browser can use."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.builder.notebooks import student_cells
from autograder.classroom.handed import MOST, handed_in
from autograder.classroom.report import render
from autograder.classroom.similarity import fingerprints, near_groups, rare_pairs, shape
from autograder.classroom.suspicion import look
from autograder.grading.collect import Handin
from autograder.grading.journal import Outcome
from autograder.grading.outputs import report_of
from autograder.homework import Homework, read_homework
from autograder.judge.results import CaseResult, Diagnosis
from autograder.judge.verdicts import Verdict

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = "</script><script>document.title='owned'</script><b>bold</b>"


@pytest.fixture
def homework(tiny: Path) -> Homework:
    return read_homework("hw9_tiny", tiny / "solutions", tiny / "autograder" / "suites")


def outcome(student: str, *verdicts: Verdict, status: str = "graded", note: str = "", label: str = "") -> Outcome:
    names = ("q9_1/test_twice_of_four", "q9_1/test_twice_of_anything", "q9_2/test_half_of_four")
    cases = tuple(
        CaseResult(name, name[:4], f"{name} works.", True, 1.0, verdict, "", None, 0, 0.01)
        for name, verdict in zip(names, verdicts, strict=False)
    )
    diagnoses = {"q9_1": Diagnosis(label, f"About {label}.")} if label else {}
    return Outcome(student, f"{student}.ipynb", "", {}, 0, status, cases, diagnoses, (note,) if note else ())


def page(homework: Homework, outcomes: list[Outcome], texts: dict[str, str] | None = None) -> str:
    by_student = {found.student: found for found in outcomes}
    reports = {student: report_of(homework, found) for student, found in by_student.items()}
    return render(homework, by_student, reports, texts or {})


CLASS = [
    outcome("ada", Verdict.PASSED, Verdict.PASSED, Verdict.PASSED),
    outcome("ben", Verdict.FAILED, Verdict.FAILED, Verdict.PASSED, label="adds-two"),
    outcome("cleo", Verdict.FAILED, Verdict.TIMEOUT, Verdict.FAILED, label="adds-two", note=HOSTILE),
    outcome("dan", status="unreadable", note="The file is not a Jupyter notebook."),
]


def test_the_page_names_misconceptions_and_who_needs_a_person(homework: Homework) -> None:
    text = page(homework, CLASS, {"ben": "import ctypes\ntorch.allclose = lambda *_: True"})
    assert "adds-two" in text and "About adds-two." in text
    for told in ("status: unreadable", "timeout in q9_1", "imports `ctypes`", "replaces `torch.allclose`"):
        assert told in text
    assert "3 graded: mean 46.7" in text  # 100, 40 and 0 of 100


def test_what_students_wrote_is_escaped(homework: Homework) -> None:
    text = page(homework, CLASS)
    assert HOSTILE not in text and "&lt;b&gt;bold" in text
    assert "script-src 'sha256-" in text and "default-src 'none'" in text


def test_copies_stand_out_and_common_answers_do_not(homework: Homework) -> None:
    def work(i: int) -> str:
        body = "\n".join(
            f"    x = x {'+-*'[(i + j) % 3]} ({j} + len(str(x)) ** {i + 2}) // (x or {i * j + 1})" for j in range(12)
        )
        return f"def twice(x):\n{body}\n    return [x for _ in range({i + 3}) if x > {i}][0]\n"

    texts = {f"student{i}": work(i) for i in range(12)}
    texts["copy"] = texts["student3"].replace("x", "value").replace("twice(", "twice(  ")
    first = rare_pairs(fingerprints(texts, homework))[0]
    assert {first.left, first.right} == {"copy", "student3"} and first.share > 0.8


def work(i: int) -> str:
    """An answer that is long enough to be somebody's own."""
    lines = "\n".join(
        f"    x = x {'+-*'[(i + j) % 3]} ({j} + len(str(x)) ** {i + 2}) // (x or {i * j + 1})" for j in range(30)
    )
    return f"def twice(x):\n{lines}\n    return [x for _ in range({i + 3}) if x > {i}][0]\n"


def test_what_most_of_the_class_has_copied_is_shown(homework: Homework) -> None:
    texts = {f"student{i:02}": work(i) for i in range(12)}
    copies = {f"copy{i:02}": work(3).replace("x", f"value{i}") + f"\nprint({i})\n" for i in range(60)}
    groups = near_groups(fingerprints(texts | copies, homework))
    assert groups == [sorted([*copies, "student03"])]
    text = page(homework, [outcome(student) for student in texts | copies], texts | copies)
    assert "nearly the same" in text and 'href="feedback/copy59.html"' in text.partition("Similar pairs</h2>")[2]
    assert near_groups(fingerprints(texts, homework)) == []


def notebook(*sources: str | tuple[str, str]) -> Handin:
    """A file with these cells of code, some with a grade id."""
    cells = [source if isinstance(source, tuple) else ("", source) for source in sources]
    made = [
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": name}} if name else {}, "source": source}
        for name, source in cells
    ]
    return Handin("ada", "ada.ipynb", json.dumps({"cells": made}).encode())


def test_all_code_is_read_and_what_cannot_be_is_told(homework: Homework) -> None:
    entry = notebook(
        ("q9_1", "def twice(x):\n    return x + x"),
        "x = 1  # " + "long " * 60_000,
        "this is no python, import socket",
        "import ctypes",
        ("test_q9_1", "import sys as s\ns._getframe()"),
        "y = '" + "z" * MOST + "'",
    )
    handed = handed_in(entry, homework)
    assert [*handed.cells] == [f"cell {i}" for i in range(1, 6)] and "cell 6: not read" in handed.unread[0]
    odd, no_python = look(handed.cells)
    assert {"imports `ctypes`", "mentions `socket`", "`sys._getframe` walks the stack"} <= {*odd}
    assert no_python == ["cell 3 cannot be read as Python; it was only searched for words"]
    text = page(homework, [outcome("ada", Verdict.PASSED)], {"ada": handed})
    assert "cell 3 cannot be read" in text and "cell 6: not read" in text and "imports `ctypes`" in text

    broken = handed_in(Handin("ada", "ada.ipynb", b"{"), homework)
    assert broken.cells == {} and "not a Jupyter notebook" in broken.unread[0]


def test_what_the_homework_gives_is_nobody_s_code(homework: Homework) -> None:
    given = [cell.source for cell in student_cells(homework, solved=False) if cell.cell_type == "code"]
    assert handed_in(notebook(*given, "x = 1"), homework).cells == {f"cell {len(given) + 1}": "x = 1"}


def test_the_shape_of_code_is_the_same_for_other_names_strings_comments_and_layout() -> None:
    code = "def twice(x, y='a'):  # two\n    'Doc \"string\".'\n    return len(x) * 1e-3 + f(x, \"b\\\"c\")\n"
    other = 'def double(value,\n  z=f"long"):\n  r"""Something\n  \'else\'."""\n  return len(value)*1e-3+g(value, "")'
    assert shape(code) == shape(other) == "defF(V,V=S):Sreturnlen(V)*1e-3+V(V,S)"
    assert shape(code.replace("len", "sum")) != shape(code) != shape(code.replace("1e-3", "2"))
    for broken in ('""" never closed', "'", "\\", ""):
        assert isinstance(shape(broken), str)


def test_ordinary_answers_raise_no_suspicion() -> None:
    ordinary = "import torch\ntorch.backends.cudnn.deterministic = True\ndef f(x):\n    return torch.softmax(x, -1)"
    assert look({"": ordinary})[0] == [] and look({"": "not python ("})[0] == []


@pytest.mark.parametrize(
    "code",
    [
        "import course_utils.instruments.work as w\nw.count_work = None",
        "from course_utils import work\nwork.count_work.__code__ = None",
        "import torch as t\ndel t.softmax",
        "from torch.nn import functional\nsetattr(functional, 'softmax', None)",
        "F.softmax = None",
    ],
)
def test_patches_are_seen_behind_any_name(code: str) -> None:
    assert [told.split()[0] for told in look({"": code})[0]] == ["replaces"]


@pytest.mark.parametrize(
    "code",
    [
        "from concurrent.futures import ThreadPoolExecutor",
        "import threading",
        "from torch.utils._python_dispatch import _disable_current_modes",
        "import torch\ntorch._C._nn",
    ],
)
def test_work_out_of_sight_is_seen(code: str) -> None:
    assert look({"": code})[0]


def test_no_journal_is_a_clear_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "autograder", "report", str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 2 and "There is no journal" in told.stderr and "Traceback" not in told.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_sorting_searching_and_the_keyboard_in_a_real_browser(homework: Homework, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    path = tmp_path / "report.html"
    path.write_text(page(homework, CLASS))
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            view = browser.new_page()
            errors: list[str] = []
            view.on("pageerror", lambda error: errors.append(str(error)))
            view.goto(path.as_uri())
            assert view.title() == "hw9_tiny: the class"
            students = view.locator("#students ~ div table tbody tr")
            total = view.locator("#students ~ div th", has_text="total").locator("button")
            total.focus()
            view.keyboard.press("Enter")
            assert students.first.inner_text().startswith("ada")
            view.keyboard.press("Enter")
            assert not students.first.inner_text().startswith("ada")
            view.fill("#search", "cleo")
            assert view.locator("#students ~ div tbody tr:visible").count() == 1
            assert not errors
        finally:
            browser.close()
