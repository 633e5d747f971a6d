"""The page a student gets: what was checked, what came out, which mistake it looks like; no hidden test's code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template, select_autoescape

from autograder.grading.journal import VERSION, Outcome
from autograder.homework import Homework
from autograder.judge.results import QuestionResult, Report

MAX_PRINTED = 4_000  # characters of printed output shown


def feedback_data(homework: Homework, outcome: Outcome, report: Report) -> dict[str, Any]:
    """The feedback as plain data: the page's JSON twin."""
    printed = outcome.printed
    return {
        "version": VERSION,
        "homework": homework.name,
        "student": outcome.student,
        "status": outcome.status,
        "total": report.total,
        "points": homework.points,
        "notes": list(outcome.notes),
        "printed": printed if len(printed) <= MAX_PRINTED else printed[:MAX_PRINTED] + "\n...",
        "questions": [_question(result, outcome, homework) for result in report.questions],
    }


def feedback_page(data: dict[str, Any]) -> str:
    """One self-contained HTML page; everything in it is escaped and nothing in it can run."""
    return _template().render(data)


def _question(result: QuestionResult, outcome: Outcome, homework: Homework) -> dict[str, Any]:
    return {
        "question": result.question,
        "title": homework.titles.get(result.question, ""),
        "score": result.score,
        "judged": result.judged,
        "points": result.points,
        "graded": result.graded,
        "answered": result.answered,
        "complete": result.complete,
        "text": result.text,
        "comment": result.hand.comment if result.hand else None,
        "mistake": result.diagnosis.label if result.diagnosis else None,
        "hint": result.diagnosis.hint if result.diagnosis else None,
        "cases": [
            {
                "id": f"{outcome.student}/{case.case}",
                "sentence": case.sentence,
                "variation": case.case.partition("[")[2].rstrip("]"),
                "public": case.public,
                "weight": case.weight,
                "verdict": str(case.verdict),
                "message": case.message,
                "seed": case.seed,
            }
            for case in result.cases
        ],
    }


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(default=True), trim_blocks=True
    )
    return environment.get_template("feedback.html.j2")
