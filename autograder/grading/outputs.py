"""What a run leaves beside its journal, computed from it: grades.csv, summary.json, a feedback page per student."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from autograder.builder.write import Files, write
from autograder.errors import BadInput
from autograder.grading.by_hand import BY_HAND, Sheet
from autograder.grading.changes import GRADES
from autograder.grading.feedback import feedback_data, feedback_page
from autograder.grading.journal import VERSION, Outcome
from autograder.grading.tables import csv_text, inert
from autograder.homework import Explanation, Homework
from autograder.judge.results import QuestionResult, Report, by_question

EMPTY = Sheet()


def report_of(homework: Homework, outcome: Outcome, by_hand: Sheet = EMPTY) -> Report:
    """The scores that an outcome's facts are worth, and what people decided."""
    cases, decided = by_question(homework, outcome.cases), by_hand.of(outcome.student)
    questions = (
        QuestionResult(
            question=asked.id,
            points=asked.points,
            cases=cases.get(asked.id, ()),
            diagnosis=outcome.diagnoses.get(asked.id),
            hand=decided.get(asked.id),
            text=outcome.texts.get(asked.id, "") if isinstance(asked, Explanation) else None,
        )
        for asked in homework.graded
    )
    return Report(homework.name, tuple(questions), outcome.notes)


def reports_of(homework: Homework, outcomes: dict[str, Outcome], by_hand: Sheet = EMPTY) -> dict[str, Report]:
    """The scores of a class, by student in order."""
    return {student: report_of(homework, outcomes[student], by_hand) for student in sorted(outcomes)}


def write_outputs(homework: Homework, outcomes: dict[str, Outcome], out: Path, by_hand: Sheet = EMPTY) -> None:
    """Bring grades.csv, summary.json, by_hand.csv and feedback/ up to date with the journal and the sheet."""
    reports = reports_of(homework, outcomes, by_hand)
    sheet = by_hand.text(reports)
    files: Files = {
        **({out / BY_HAND: sheet.encode()} if sheet else {}),
        out / GRADES: grades_csv(homework, outcomes, reports).encode(),
        out / "summary.json": _json(summary(homework, outcomes, reports)),
    }
    for student, report in reports.items():
        data = feedback_data(homework, outcomes[student], report)
        files[out / "feedback" / f"{student}.json"] = _json(data)
        files[out / "feedback" / f"{student}.html"] = feedback_page(data).encode()
    try:
        write(files, [], sync=False)
    except OSError as error:
        raise BadInput(
            f"{out} cannot be written ({error.strerror}). The journal is safe: make room and "
            "run the same command again."
        ) from None


def grades_csv(homework: Homework, outcomes: dict[str, Outcome], reports: dict[str, Report]) -> str:
    """One row per student: a column per question, the total, and the status."""
    table: list[list[object]] = [["student_id", *(asked.id for asked in homework.graded), "total", "status"]]
    for student, report in reports.items():
        nothing = "0" if outcomes[student].status == "unreadable" else ""
        scores = [f"{result.score:g}" if result.graded else nothing for result in report.questions]
        table.append([inert(student), *scores, f"{report.total:g}", outcomes[student].status])
    return csv_text(table)


def summary(homework: Homework, outcomes: dict[str, Outcome], reports: dict[str, Report]) -> dict[str, Any]:
    """The class at a glance, for scripts."""
    totals = [report.total for student, report in reports.items() if outcomes[student].status == "graded"]
    return {
        "version": VERSION,
        "homework": homework.name,
        "submissions": len(outcomes),
        "status": dict(Counter(outcome.status for outcome in outcomes.values())),
        "mean_total": round(sum(totals) / len(totals), 2) if totals else None,
        "questions": {asked.id: _question_summary(asked.id, reports) for asked in homework.graded},
    }


def _question_summary(question: str, reports: dict[str, Report]) -> dict[str, Any]:
    results = [report.question(question) for report in reports.values() if report.question(question).graded]
    return {
        "points": results[0].points if results else None,
        "mean": round(sum(result.score for result in results) / len(results), 2) if results else None,
        "verdicts": dict(Counter(str(case.verdict) for result in results for case in result.cases)),
        "mistakes": dict(Counter(result.diagnosis.label for result in results if result.diagnosis).most_common()),
    }


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()
