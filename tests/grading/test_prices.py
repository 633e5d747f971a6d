"""One mistake costs once: its price, where it explains every failed case; and nobody gains by imitating one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.catalogue import LEAST_PRICE, PRICE
from autograder.classroom.statistics import misconceptions
from autograder.errors import BadSource
from autograder.failing import failing, unproved
from autograder.grading.feedback import feedback_data, feedback_page
from autograder.grading.journal import Journal, Outcome, known
from autograder.grading.outputs import report_of
from autograder.homework import Homework, read_homework
from autograder.judge.results import CaseResult, Diagnosis, QuestionResult, Waiver
from autograder.judge.verdicts import Verdict

NAMES = [f"q9_1/test_{letter}" for letter in "abcd"]


def cases(*verdicts: Verdict) -> tuple[CaseResult, ...]:
    return tuple(
        CaseResult(name, "q9_1", f"{name} holds.", False, 1.0, verdict, "the value is wrong", None, 0, 0.0)
        for name, verdict in zip(NAMES, verdicts, strict=False)
    )


P, F, E = Verdict.PASSED, Verdict.FAILED, Verdict.ERROR
THREE = Diagnosis("wrong-axis", "Look at the axis.", exact=True, fails=(NAMES[1], NAMES[2], NAMES[3]))


def result(found: Diagnosis | None, *verdicts: Verdict, price: float | None = PRICE, **how: Any) -> QuestionResult:
    return QuestionResult("q9_1", 12, cases(*verdicts), found, price=price, **how)


def test_one_mistake_that_explains_all_failed_cases_costs_its_price() -> None:
    found = result(THREE, P, F, F, E)
    assert found.by_cases == 3 and found.judged == found.score == 7.2 and found.costs_once and not found.complete
    assert result(THREE, P, P, P, F).judged == 9  # the cases earn more
    assert result(THREE, P, F, F, F, price=1.0).judged == 3
    assert result(THREE, F, F, F, F, price=1.5).judged == 0


@pytest.mark.parametrize(
    ("found", "verdicts"),
    [
        (replace(THREE, exact=False), (P, F, F, F)),  # nearly that mistake
        (THREE, (F, F, F, F)),  # fails more than the mistake does
        (THREE, (P, F, F, Verdict.TIMEOUT)),  # never came to an end
        (THREE, (P, F, F, Verdict.CRASHED)),
        (THREE, (P, F, F, Verdict.INFRASTRUCTURE)),
        (None, (P, F, F, F)),
    ],
)
def test_an_answer_that_only_resembles_a_mistake_gains_nothing(found: Diagnosis | None, verdicts: Any) -> None:
    one = result(found, *verdicts)
    assert one.judged == one.by_cases and not one.costs_once


def test_without_a_price_cases_alone_count() -> None:
    assert result(THREE, P, F, F, F, price=None).judged == 3


def test_two_mistakes_cost_the_sum_and_both_must_be_exact() -> None:
    both = replace(THREE, fails=(NAMES[1],), second=Diagnosis("no-scale", "Scale.", True, (NAMES[2], NAMES[3])))
    assert result(both, P, F, F, F, price=0.6).judged == 4.8
    loose = replace(both, second=replace(both.second, exact=False))  # type: ignore[type-var]
    assert result(loose, P, F, F, F, price=0.6).judged == 3


def test_a_waived_case_needs_no_explanation() -> None:
    waived = {NAMES[0]: Waiver("drop", "a bad case")}
    assert result(THREE, F, F, F, F, waived=waived).judged == 7.2


@pytest.fixture
def homework(tiny: Path) -> Homework:
    return read(tiny)


def read(folder: Path) -> Homework:
    return read_homework("hw9_tiny", folder / "solutions", folder / "autograder" / "suites")


def price(folder: Path, label: str, header: str) -> Homework:
    path = folder / "autograder" / "suites" / "hw9_tiny" / "mistakes" / "q9_1.py"
    text = path.read_text()
    assert f"# %% {label}\n" in text
    path.write_text(text.replace(f"# %% {label}\n", f"# %% {label} {header}\n"))
    return read(folder)


def test_a_mistake_has_its_price_in_its_header_and_else_the_usual_one(tiny: Path) -> None:
    label = read(tiny).mistakes["q9_1"][0].label
    assert read(tiny).mistakes["q9_1"][0].price == PRICE
    assert price(tiny, label, "price=0.7").mistakes["q9_1"][0].price == 0.7


@pytest.mark.parametrize("header", ["price=0", "price=0.01", "price=1.5", 'price="dear"', "prize=0.5"])
def test_a_price_that_is_none_is_refused(tiny: Path, header: str) -> None:
    label = read(tiny).mistakes["q9_1"][0].label
    with pytest.raises(BadSource) as caught:
        price(tiny, label, header)
    assert f"{LEAST_PRICE} to 1" in str(caught.value) or "means nothing here" in str(caught.value)


def outcome(homework: Homework, found: Diagnosis) -> Outcome:
    return Outcome("ada", "ada.ipynb", "", {}, 0, "graded", cases(P, F, F, F), {"q9_1": found})


def test_new_prices_need_no_new_run(tiny: Path) -> None:
    label = read(tiny).mistakes["q9_1"][0].label
    found = outcome(read(tiny), replace(THREE, label=label))
    assert report_of(read(tiny), found).question("q9_1").score == 36  # of 60
    assert report_of(price(tiny, label, "price=0.1"), found).question("q9_1").score == 54
    gone = outcome(read(tiny), replace(THREE, label="no-longer-known"))
    assert report_of(read(tiny), gone).question("q9_1").score == 15


def test_the_journal_keeps_what_the_price_is_computed_from(homework: Homework, tmp_path: Path) -> None:
    both = replace(THREE, second=Diagnosis("no-scale", "Scale.", True, (NAMES[2],)))
    with Journal(tmp_path / "results.jsonl", "hw9_tiny") as journal:
        journal.add(outcome(homework, both))
    assert known(tmp_path / "results.jsonl", "hw9_tiny")["ada"].diagnoses["q9_1"] == both


def test_the_page_says_what_one_mistake_costs_and_folds_the_checks(homework: Homework) -> None:
    label = homework.mistakes["q9_1"][0].label
    found = outcome(homework, replace(THREE, label=label))
    report = report_of(homework, found)
    data = feedback_data(homework, found, report, "full")
    asked = data["questions"][0]
    assert asked["once"] == "One mistake explains all 3 failed checks. It costs 24 of 60 points."
    page = feedback_page(data)
    assert asked["once"] in page and "The checks, one by one" in page and "Look at the axis." in page
    assert [case["message"] for case in asked["cases"]][1:] == ["The value is wrong.", *["The same as above."] * 2]
    (mistake,) = misconceptions({"ada": found}, {"ada": report})
    assert mistake.cost == 24
    assert "explains all" not in feedback_page(feedback_data(homework, found, report, "verdicts"))


def test_verify_keeps_which_cases_a_mistake_fails_until_a_test_or_an_answer_changes(
    tiny: Path, commands: Callable[..., Callable[..., Any]]
) -> None:
    assert unproved(read(tiny)) == ["q9_1", "q9_2"]
    told = commands(tiny)("autograder", "verify", "--json")
    rows = json.loads(told.out)["homeworks"]["hw9_tiny"]
    assert rows[0]["public"] == 4 and rows[0]["unseen"] == []
    homework = read(tiny)
    label = homework.mistakes["q9_1"][0].label
    assert failing(homework, "q9_1")[label] == {"q9_1/test_twice_of_four", "q9_1/test_twice_of_anything"}
    assert failing(price(tiny, label, "price=0.7"), "q9_1")  # a price decides nothing about that
    hidden = tiny / "autograder" / "suites" / "hw9_tiny" / "hidden" / "test_q9_1.py"
    hidden.write_text(hidden.read_text() + "\n\ndef test_more(twice):\n    \"\"\"More.\"\"\"\n    twice(1)\n")
    assert failing(read(tiny), "q9_1") == {} and unproved(read(tiny)) == ["q9_1"]
