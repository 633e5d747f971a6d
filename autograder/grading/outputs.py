"""What a run leaves beside its journal, computed from it: grades.csv, summary.json, a feedback page per student."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.builder.write import Files, write
from autograder.errors import BadInput
from autograder.grading.feedback import feedback_data, feedback_page
from autograder.grading.journal import VERSION, Outcome
from autograder.homework import Homework
from autograder.judge.results import QuestionResult, Report, by_question


def report_of(homework: Homework, outcome: Outcome) -> Report:
    """The scores that an outcome's facts are worth."""
    cases = by_question(homework, outcome.cases)
    questions = (QuestionResult(q.id, q.points, cases[q.id], outcome.diagnoses.get(q.id)) for q in homework.questions)
    return Report(homework.name, tuple(questions), outcome.notes)


def write_outputs(homework: Homework, outcomes: dict[str, Outcome], out: Path) -> None:
    """Bring grades.csv, summary.json and feedback/ up to date with the journal."""
    reports = {student: report_of(homework, outcomes[student]) for student in sorted(outcomes)}
    files: Files = {
        out / "grades.csv": grades_csv(homework, outcomes, reports).encode(),
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
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(["student_id", *(question.id for question in homework.questions), "total", "status"])
    for student, report in reports.items():
        scores = [f"{result.score:g}" if result.cases else "" for result in report.questions]
        if outcomes[student].status == "unreadable":
            scores = ["0"] * len(scores)
        table.writerow([student, *scores, f"{report.total:g}", outcomes[student].status])
    return buffer.getvalue()


def summary(homework: Homework, outcomes: dict[str, Outcome], reports: dict[str, Report]) -> dict[str, Any]:
    """The class at a glance, for scripts."""
    totals = [report.total for student, report in reports.items() if outcomes[student].status == "graded"]
    return {
        "version": VERSION,
        "homework": homework.name,
        "submissions": len(outcomes),
        "status": dict(Counter(outcome.status for outcome in outcomes.values())),
        "mean_total": round(sum(totals) / len(totals), 2) if totals else None,
        "questions": {question.id: _question_summary(question.id, reports) for question in homework.questions},
    }


def _question_summary(question: str, reports: dict[str, Report]) -> dict[str, Any]:
    results = [report.question(question) for report in reports.values() if report.question(question).cases]
    return {
        "points": results[0].points if results else None,
        "mean": round(sum(result.score for result in results) / len(results), 2) if results else None,
        "verdicts": dict(Counter(str(case.verdict) for result in results for case in result.cases)),
        "mistakes": dict(Counter(result.diagnosis.label for result in results if result.diagnosis).most_common()),
    }


def score_changes(homework: Homework, old: dict[str, Outcome], new: dict[str, Outcome]) -> Iterator[str]:
    """A line for every score that differs between two sets of outcomes."""
    for student in sorted(new):
        before = report_of(homework, old[student]) if student in old else None
        after = report_of(homework, new[student])
        for result in after.questions:
            was = before.question(result.question).score if before else 0.0
            if was != result.score:
                yield f"  {student}  {result.question}: {was:g} -> {result.score:g}"


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()
