"""What a run leaves beside its journal, computed from it: grades.csv, summary.json, a feedback page per student."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.assumptions import Assumption, in_order
from autograder.errors import BadInput
from autograder.grading.by_hand import BY_HAND, PAGE
from autograder.grading.changes import GRADES
from autograder.grading.collect import folded
from autograder.grading.decided import Decided
from autograder.grading.feedback import feedback_data, feedback_page
from autograder.grading.journal import MISSING, VERSION, Outcome
from autograder.grading.late import LATE, NOT_KNOWN
from autograder.grading.tables import csv_text, inert
from autograder.grading.waivers import of_cases
from autograder.homework import Explanation, Homework
from autograder.judge.results import Diagnosis, HandGrade, QuestionResult, Report, Waiver, by_question
from autograder.places import THE_COURSE
from autograder.write import Files, write

NOTHING = Decided()
AFTER_QUESTIONS = ("total", "penalty", "final", "handed_in", "late", "outdated", "status")  # columns of grades.csv
PUBLIC_ONLY = "public only"  # the status of what looks graded, and is not: hidden cases are not run
SUMMARY = "summary.json"


def report_of(homework: Homework, outcome: Outcome, people: Decided = NOTHING) -> Report:
    """The scores that an outcome's facts are worth, and what people decided."""
    cases, by_hand = by_question(homework, outcome.cases), people.sheet.of(outcome.student)
    lateness = people.deadline.of(outcome.student, outcome.handed, outcome.marked)
    old = people.outdated.get(outcome.student, ())
    questions = (
        QuestionResult(
            question=asked.id,
            points=asked.points,
            cases=cases.get(asked.id, ()),
            diagnosis=outcome.diagnoses.get(asked.id),
            hand=by_hand.get(asked.id),
            text=_text(outcome, asked.id) if isinstance(asked, Explanation) else None,
            waived=of_cases(people.waived, cases.get(asked.id, ())),
            outdated=asked.id in old,
            bonus=asked.bonus,
            price=price_of(homework, asked.id, outcome.diagnoses.get(asked.id)),
        )
        for asked in homework.graded
    )
    report = Report(
        homework.name,
        tuple(questions),
        outcome.told,
        comment=by_hand.get(PAGE, HandGrade(None)).comment,
        handed=lateness.handed.isoformat(" ", "minutes") if lateness.handed else "",
        late=str(lateness),
    )
    return replace(report, penalty=lateness.penalty(report.total))


def price_of(homework: Homework, question: str, diagnosis: Diagnosis | None) -> float | None:
    """What the mistakes of a diagnosis cost, as the catalogue says now; None where cases alone count.

    Scores are computed here and nowhere else, for every front end.
    """
    if diagnosis is None or THE_COURSE.scoring == "cases" or question not in homework.mistakes:
        return None
    prices = {entry.label: entry.price for entry in homework.mistakes[question]}
    labels = [mistake.label for mistake in diagnosis.all]
    return sum(prices[label] for label in labels) if all(label in prices for label in labels) else None


def _text(outcome: Outcome, question: str) -> str | None:
    """An answer in words; None of one who handed in nothing, for whom there is nothing to read."""
    return None if outcome.status == MISSING else outcome.texts.get(question, "")


def reports_of(homework: Homework, outcomes: Mapping[str, Outcome], people: Decided = NOTHING) -> dict[str, Report]:
    """The scores of a class, by student in order."""
    return {student: report_of(homework, outcomes[student], people) for student in sorted(outcomes)}


def status_of(outcome: Outcome) -> str:
    """The status as it is shown: what only public checks have looked at is not graded."""
    looked = any(" public" in stamp for stamp in outcome.suites.values())
    return PUBLIC_ONLY if looked and outcome.status in ("graded", "partial") else outcome.status


def write_outputs(
    homework: Homework,
    outcomes: dict[str, Outcome],
    out: Path,
    people: Decided = NOTHING,
    level: str | None = None,
    of_class: Iterable[Assumption] = (),
) -> list[Assumption]:
    """Bring grades.csv, summary.json, by_hand.csv and feedback/ up to date with the journal and what people decided.

    Returns all that was assumed.
    """
    assumed = all_assumed(outcomes, people, of_class)
    reports = reports_of(homework, outcomes, people)
    sheet = people.sheet.text(reports)
    files: Files = {
        **({out / BY_HAND: sheet.encode()} if sheet else {}),
        **people.rules.files(out),
        **people.files,
        out / GRADES: grades_csv(homework, outcomes, reports).encode(),
        out / SUMMARY: _json(summary(homework, outcomes, reports, assumed, people.waived)),
    }
    pages = page_names(outcomes)
    for student, report in reports.items():
        data = feedback_data(homework, outcomes[student], report, level or people.level)
        data["status"] = status_of(outcomes[student])
        data["assumptions"] += [one.to_json() for one in _times_assumed({student: outcomes[student]}, people)]
        files[out / "feedback" / f"{pages[student]}.json"] = _json(data)
        files[out / "feedback" / f"{pages[student]}.html"] = feedback_page(data).encode()
    try:
        for student in (student for student, page in pages.items() if page != student):  # another's now, or nobody's
            for suffix in ("json", "html"):
                (out / "feedback" / f"{student}.{suffix}").unlink(missing_ok=True)
        write(files, [], sync=False)
    except OSError as error:
        raise BadInput(
            f"{out} cannot be written ({error.strerror}). The journal is safe: make room and "
            "run the same command again."
        ) from None
    return assumed


def all_assumed(
    outcomes: Mapping[str, Outcome], people: Decided = NOTHING, of_class: Iterable[Assumption] = ()
) -> list[Assumption]:
    """What was assumed about submissions, the class, the sheet and the times, in the order of the list."""
    of_submissions = (one for outcome in outcomes.values() for one in outcome.assumptions)
    by_people = [*people.sheet.assumptions(outcomes), *_times_assumed(outcomes, people)]
    return in_order([*of_submissions, *of_class, *by_people])


def _times_assumed(outcomes: Mapping[str, Outcome], people: Decided) -> Iterator[Assumption]:
    """Who may be late without anything being taken off."""
    for student, outcome in outcomes.items():
        found = people.deadline.of(student, outcome.handed, outcome.marked)
        if found.late and found.seconds is None:
            told = "Late, nobody knows by how much: nothing is taken off."
            yield Assumption("late", told, student=student)
        elif str(found) == NOT_KNOWN and outcome.status != MISSING:
            told = "When it was handed in is not known: nothing is taken off."
            yield Assumption("time", told, student=student)


def page_names(students: Iterable[str]) -> dict[str, str]:
    """What everybody's page is called: by the student, with a hash where a file system may take two names for one."""
    names = list(students)
    alike = Counter(map(folded, names))
    return {name: _hashed(name) if alike[folded(name)] > 1 else name for name in names}


def _hashed(student: str) -> str:
    return f"{student}-{hashlib.sha256(student.encode(errors='surrogatepass')).hexdigest()[:6]}"


def grades_csv(homework: Homework, outcomes: Mapping[str, Outcome], reports: dict[str, Report]) -> str:
    """One row per student: a column per question, the total, what lateness costs, and what is left; the status."""
    table: list[list[object]] = [["student_id", *(asked.id for asked in homework.graded), *AFTER_QUESTIONS]]
    for student, report in reports.items():
        nothing = "0" if outcomes[student].void or outcomes[student].status == MISSING else ""
        scores = [f"{result.score:g}" if result.graded else nothing for result in report.questions]
        totals = [f"{report.total:g}", f"{report.penalty:g}", f"{report.final:g}"]
        old = " ".join(result.question for result in report.questions if result.outdated)
        table.append([inert(student), *scores, *totals, report.handed, report.late, old, status_of(outcomes[student])])
    return csv_text(table)


def summary(
    homework: Homework,
    outcomes: dict[str, Outcome],
    reports: dict[str, Report],
    assumed: Iterable[Assumption] = (),
    waived: Mapping[str, Waiver] | None = None,
) -> dict[str, Any]:
    """The class at a glance, for scripts."""
    graded = [report for student, report in reports.items() if outcomes[student].status == "graded"]
    return {
        "version": VERSION,
        "homework": homework.name,
        "submissions": sum(outcome.status != MISSING for outcome in outcomes.values()),
        "status": dict(Counter(status_of(outcome) for outcome in outcomes.values())),
        "points": homework.points,
        "mean_total": _mean([report.total for report in graded]),
        "mean_final": _mean([report.final for report in graded]),
        "late": [student for student, report in reports.items() if report.late.startswith(LATE)],
        "waived": {name: {"how": waiver.how, "why": waiver.why} for name, waiver in (waived or {}).items()},
        "questions": {asked.id: _question_summary(asked.id, reports) for asked in homework.graded},
        "assumptions": [one.to_json() for one in assumed],
    }


def ungraded(reports: Mapping[str, Report]) -> dict[str, int]:
    """The questions that are not graded yet, with the number of students who wait for that."""
    waiting = Counter(r.question for report in reports.values() for r in report.questions if not r.graded)
    return dict(waiting)


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 2) if values else None


def _question_summary(question: str, reports: dict[str, Report]) -> dict[str, Any]:
    results = [report.question(question) for report in reports.values() if report.question(question).graded]
    return {
        "points": results[0].points if results else None,
        "mean": _mean([result.score for result in results]),
        "verdicts": dict(Counter(str(case.verdict) for result in results for case in result.cases)),
        "mistakes": dict(Counter(result.diagnosis.label for result in results if result.diagnosis).most_common()),
    }


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()
