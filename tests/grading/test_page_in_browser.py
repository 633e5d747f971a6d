"""The feedback page and the class report on a narrow screen, and without a mouse, in a real browser."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from autograder.classroom.report import render
from autograder.grading.by_hand import PAGE, Sheet
from autograder.grading.decided import Decided
from autograder.grading.journal import Outcome
from autograder.grading.outputs import report_of, write_outputs
from autograder.homework import Homework, read_homework
from autograder.judge.results import CaseResult, Diagnosis, HandGrade, Waiver
from autograder.judge.verdicts import Verdict

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SCREENSHOTS = os.environ.get("AUTOGRADER_SCREENSHOTS")
NARROW = (320, 360, 399)
LONG = "q9_2/test_half_of_a_very_long_name_that_nobody_breaks[with-a-variation-that-is-long-too]"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def homework(write_tiny: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Homework:
    course = write_tiny(tmp_path_factory.mktemp("tiny"))
    return read_homework("hw9_tiny", course / "solutions", course / "autograder" / "suites")


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    def case(name: str, verdict: Verdict, message: str = "") -> CaseResult:
        question = name.partition("/")[0]
        return CaseResult(
            name, question, "the result is right for any number.", True, 1, verdict, message, None, 0, 0.1
        )

    return Outcome(
        "a-student-with-a-long-name@some-department.example.org",
        "submitted/a-student-with-a-long-name@some-department.example.org/hw9_tiny_final_version (1).ipynb",
        "0", {}, 0, "graded",
        cases=(
            case("q9_1/test_twice", Verdict.PASSED), case("q9_1/test_more", Verdict.FAILED, "not so"),
            case(LONG, Verdict.FAILED, "expected [" + "1.25," * 60 + "]"),
        ),
        diagnoses={"q9_2": Diagnosis("doubles", "It doubles. Look at `half` again.")},
        notes=("Cell 3 failed: " + "x" * 200,),
        printed="\n".join(["a long line " * 30] * 60),
        graded="2026-11-18T04:00:00+00:00", graded_by="0.1.0",
    )  # fmt: skip


@pytest.fixture(scope="module")
def people(outcome: Outcome) -> Decided:
    said = {PAGE: HandGrade(None, "Well begun. " * 10), "q9_1": HandGrade(None, "https://" + "long" * 40)}
    return Decided(Sheet({outcome.student: said}), {LONG: Waiver("drop", "It asked too much.")})


@pytest.fixture(scope="module")
def pages(homework: Homework, outcome: Outcome, people: Decided, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    write_outputs(homework, {outcome.student: outcome}, out, people, "full")
    reports = {outcome.student: report_of(homework, outcome, people)}
    (out / "report.html").write_text(render(homework, {outcome.student: outcome}, reports, {}, waived=people.waived))
    return out


@pytest.fixture(scope="module")
def view() -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def picture(view: Page, name: str) -> None:
    if SCREENSHOTS:
        view.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=True)


def page_of(pages: Path) -> str:
    return next((pages / "feedback").glob("*.html")).as_uri()


@pytest.mark.parametrize("width", NARROW)
@pytest.mark.parametrize("which", ["feedback", "report"])
def test_nothing_runs_out_of_a_narrow_screen(view: Page, pages: Path, width: int, which: str) -> None:
    view.set_viewport_size({"width": width, "height": 800})
    view.goto(page_of(pages) if which == "feedback" else (pages / "report.html").as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    outside = view.evaluate(
        """() => [...document.querySelectorAll("body *")].filter((e) => {
          if (e.closest(".scroll") || !e.getClientRects().length) return false;
          const box = e.getBoundingClientRect();
          return box.right > innerWidth + 1 || box.left < -1;
        }).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []
    assert view.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
    picture(view, f"narrow_{which}_{width}")


def test_the_page_works_without_a_mouse(view: Page, pages: Path) -> None:
    view.set_viewport_size({"width": 390, "height": 800})
    view.goto(page_of(pages))
    seen: list[dict[str, Any]] = []
    for _ in range(12):
        view.keyboard.press("Tab")
        seen.append(json.loads(view.evaluate(
            """() => { const e = document.activeElement;
              return JSON.stringify({tag: e.tagName, outline: getComputedStyle(e).outlineStyle}) }"""
        )))  # fmt: skip
        if seen[-1]["tag"] == "SUMMARY":
            before = view.evaluate("document.activeElement.parentElement.open")
            view.keyboard.press("Enter")
            assert view.evaluate("document.activeElement.parentElement.open") != before
            view.keyboard.press("Enter")
    reached = [one for one in seen if one["tag"] != "BODY"]
    assert {"A", "SUMMARY", "PRE"} <= {one["tag"] for one in reached}
    assert all(one["outline"] != "none" for one in reached), reached
    assert sum(one["tag"] == "SUMMARY" for one in reached) >= 2  # every question, then round again


def test_the_report_s_tables_are_reached_sorted_and_searched_by_keyboard(view: Page, pages: Path) -> None:
    view.set_viewport_size({"width": 390, "height": 800})
    view.goto((pages / "report.html").as_uri())
    tags = []
    for _ in range(60):
        view.keyboard.press("Tab")
        tag = view.evaluate(
            "document.activeElement.tagName + ' ' + (document.activeElement.id || document.activeElement.className)"
        )
        tags.append(tag)
        if tag.startswith("BUTTON"):
            view.keyboard.press("Space")
            assert view.evaluate("document.activeElement.parentElement.hasAttribute('aria-sort')")
        if tag == "INPUT search":
            view.keyboard.type("student")
            assert "rows" in view.inner_text("#found")
    assert {"INPUT search", "DIV scroll"} <= set(tags) and any(tag.startswith("BUTTON") for tag in tags)
