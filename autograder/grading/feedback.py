"""The page a student gets: what was checked, what came out, which mistake it looks like; no hidden test's code."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template, select_autoescape

from autograder.grading.journal import MISSING, VERSION, Outcome
from autograder.grading.levels import FULL, TEACHING, of_those_tried_again, taught, tells_mistake, told
from autograder.grading.seeds import seedless
from autograder.homework import Homework
from autograder.judge.results import QuestionResult, Report
from autograder.judge.verdicts import Verdict
from course_utils.explain.sentences import told_once

MAX_PRINTED = 4_000  # characters of printed output shown


def feedback_data(homework: Homework, outcome: Outcome, report: Report, level: str = TEACHING) -> dict[str, Any]:
    """The feedback as plain data: the page's JSON twin. The level says how much it tells of hidden cases."""
    printed = outcome.printed
    return {
        "version": VERSION,
        "homework": homework.name,
        "student": outcome.student,
        "status": outcome.status,
        "nothing": outcome.void or outcome.status == MISSING,
        "total": report.total,
        "penalty": report.penalty,
        "final": report.final,
        "points": homework.points,
        "handed_in": report.handed,
        "late": report.late,
        "graded": _graded(outcome),
        "by_machine": _share([q for q in report.questions if q.text is None]),
        "by_people": _share([q for q in report.questions if q.text is not None]),
        "comment": report.comment,
        "feedback": level,
        "notes": list(outcome.told),
        "assumptions": [one.for_student.to_json() for one in outcome.assumptions],
        "cells": list(outcome.notes),
        "printed": printed if len(printed) <= MAX_PRINTED else printed[:MAX_PRINTED] + "\n...",
        "questions": [_question(result, outcome, homework, level) for result in report.questions],
    }


def _graded(outcome: Outcome) -> dict[str, str]:
    """Which file was graded, when, and with what: two pages with the same suite were graded alike."""
    told = " ".join(f"{question} {seedless(stamp)}" for question, stamp in sorted(outcome.suites.items()))
    suite = hashlib.sha256(told.encode()).hexdigest()[:8] if told else ""
    return {
        "file": PurePosixPath(outcome.path).name,
        "dated": outcome.dated,
        "at": outcome.graded.replace("T", " ")[:16],
        "version": outcome.graded_by,
        "suite": suite,
    }


def _share(results: list[QuestionResult]) -> dict[str, float]:
    """How many points are graded, and of how many."""
    counted = [result for result in results if not result.bonus]
    return {
        "graded": sum(result.points for result in counted if result.graded),
        "of": sum(result.points for result in counted),
    }


def feedback_page(data: dict[str, Any]) -> str:
    """One self-contained HTML page; everything in it is escaped and nothing in it can run."""
    return _template().render(data)


def _question(result: QuestionResult, outcome: Outcome, homework: Homework, level: str) -> dict[str, Any]:
    diagnosis = result.diagnosis if tells_mistake(result.cases, level) else None
    second = diagnosis.second if diagnosis else None
    shown = {case.case: told(case, level, result.together) for case in result.cases}
    lost = [name for name, (verdict, _) in shown.items() if verdict != Verdict.PASSED]
    messages = dict(zip(lost, told_once(shown[name][1] for name in lost), strict=True))
    sentences = {taught(case, level): case.case for case in reversed(result.cases)}  # each at its first case alone
    first = {name: sentence for sentence, name in sentences.items()}
    return {
        "question": result.question,
        "title": homework.sections.get(result.question, ""),
        "score": result.score,
        "judged": result.judged,
        "points": result.points,
        "graded": result.graded,
        "answered": result.answered,
        "complete": result.complete,
        "bonus": result.bonus,
        "outdated": result.outdated,
        "text": result.text,
        "by_person": result.by_person,
        "comment": result.comment,
        "mistake": diagnosis.label if diagnosis else None,
        "hint": diagnosis.hint if diagnosis else None,
        "together": of_those_tried_again(result),
        "second": {"mistake": second.label, "hint": second.hint} if second else None,
        "by_cases": result.by_cases,
        "once": _once(result, level) if diagnosis and result.costs_once and not result.by_person else "",
        "cases": [
            {
                "id": f"{outcome.student}/{case.case}",
                "sentence": case.sentence,
                "variation": case.case.partition("[")[2].rstrip("]"),
                "public": case.public,
                "weight": case.weight,
                "verdict": verdict,
                "message": messages.get(case.case, message),
                "taught": first.get(case.case, ""),
                "credit": round(result.credit(case), 4),
                "waived": asdict(result.waived[case.case]) if case.case in result.waived else None,
            }
            for case in result.cases
            for verdict, message in [shown[case.case]]
        ],
    }


def _once(result: QuestionResult, level: str) -> str:
    """What the named mistakes cost together, where they explain everything that failed."""
    failed, mistakes = len(result.failed), len(result.diagnosis.all) if result.diagnosis else 0
    again = any(case.again for case in result.cases)  # of those only what they earn together is told
    checks = "all failed checks" if again else "the failed check" if failed == 1 else f"all {failed} failed checks"
    if level != FULL and any(case.again for case in result.cases):
        checks = "what failed"  # how many of those that were tried again is not told
    who = "One mistake explains" if mistakes == 1 else "Two mistakes explain"
    cost = f"{round(result.points - result.judged, 2):g} of {result.points:g} points"
    return f"{who} {checks}. {'It costs' if mistakes == 1 else 'Together they cost'} {cost}."


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(default=True), trim_blocks=True
    )
    return environment.get_template("feedback.html.j2")
