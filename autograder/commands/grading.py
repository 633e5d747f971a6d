"""Commands to grade a class: grade, recompute, replay, report."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.assumptions import told
from autograder.box.keeper import start_ahead
from autograder.commands.common import FAILED, INTERRUPTED, OK, Commands, Done, Tell, called, command
from autograder.homework import homework_names
from autograder.places import shown
from course_utils.terminal.completion import offer

if TYPE_CHECKING:
    from autograder.grading.by_hand import Desk
    from autograder.grading.recompute import Recomputed
    from autograder.grading.rules import Rules


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    _add_grade(commands)

    recompute = command(
        commands, "recompute", _recompute, "compute scores anew after a change of points or weights; nothing is run",
        "autograder recompute results --dry-run",
    )  # fmt: skip
    recompute.add_argument("results", type=Path, metavar="DIR", help="the folder that `grade` wrote")
    recompute.add_argument("--dry-run", action="store_true", help="only tell whose score would change")
    add_gradebook(recompute)
    add_feedback(recompute)
    _add_dates(recompute)

    replay = command(
        commands, "replay", _replay, "run one case again and show both sides' values",
        "autograder replay wrong-axis/q1_7/test_values --out results --submissions submissions.zip",
    )  # fmt: skip
    replay.add_argument("result", help="the id that the feedback quotes: <student>/<question>/<case>")
    replay.add_argument("--out", type=Path, required=True, help="the folder that `grade` wrote")
    replay.add_argument("--submissions", type=Path, required=True, help="what `grade` was given")

    report = command(
        commands, "report", _report, "write one page about the whole class: report.html",
        "autograder report results --submissions submissions.zip",
    )  # fmt: skip
    report.add_argument("out", type=Path, metavar="DIR", help="the folder that `grade` wrote")
    report.add_argument("--submissions", type=Path, help="what `grade` was given: compares submissions too")


def _add_grade(commands: Commands) -> None:
    grade = command(
        commands, "grade", _grade, "grade submissions in boxes",
        "autograder grade submissions.zip --assignment hwN_topic --out results",
    )  # fmt: skip
    grade.add_argument("submissions", type=Path, help="a folder, a zip, an export, or one notebook")
    offer(grade.add_argument("--assignment", required=True, type=called, help="the homework"), homework_names)
    grade.add_argument("--out", type=Path, required=True, help="folder for journal, grades and feedback")
    grade.add_argument("--jobs", type=int, default=0, help="processes (default: one per core)")
    grade.add_argument(
        "--worker-memory", type=float, metavar="GB", default=4.0, help="that one process may take for its work (4)"
    )
    grade.add_argument("--sandbox", default="auto", choices=["auto", "bwrap", "namespaces", "process"])
    grade.add_argument("--scheduler", help="a Dask scheduler, such as tcp://host:8786, instead of processes here")
    grade.add_argument(
        "--roster", type=Path, metavar="FILE", help="who should have handed in (CSV, or a grade book's export)"
    )
    grade.add_argument("--only", metavar="STUDENT", help="grade this one alone")
    grade.add_argument("--question", help="grade this question alone")
    grade.add_argument(
        "--replace", action="store_true", help="replace the records of students who were graded from another source"
    )
    grade.add_argument(
        "--seed", type=int, help="of the random inputs, to reproduce a run (default: a secret one, drawn for each run)"
    )
    grade.add_argument("--public-only", action="store_true", help="only the checks that students have: a quick look")
    add_gradebook(grade)
    add_feedback(grade)
    _add_dates(grade)
    grade.add_argument(
        "--regrade", action="store_true", help="grade again what is graded; score changes are told first"
    )
    grade.add_argument(
        "--dry-run", action="store_true", help="with --regrade: tell the score changes, and apply nothing"
    )


def add_feedback(parser: argparse.ArgumentParser) -> None:
    """What students read of hidden cases, wished for or by a date."""
    parser.add_argument(
        "--feedback", choices=["full", "teaching", "verdicts"],
        help="of hidden cases: all; no values and no text of student code; pass or fail (default: by --due)",
    )  # fmt: skip
    parser.add_argument(
        "--due", metavar="DATE", help="what is handed in later is late; feedback is full after it, teaching before it"
    )


def add_late(parser: argparse.ArgumentParser) -> None:
    """What lateness costs."""
    parser.add_argument("--late", type=float, metavar="PERCENT", help="taken off per day begun (default: 10)")
    parser.add_argument("--grace", type=float, metavar="MINUTES", help="late by no more costs nothing (default: 15)")
    parser.add_argument("--most", type=float, metavar="PERCENT", help="taken off at most (default: 50)")


def late_options(options: argparse.Namespace) -> dict[str, float | None]:
    """The options of `add_late` by the names that the policy has."""
    return {"percent_per_day": options.late, "grace_minutes": options.grace, "most_percent": options.most}


def _add_dates(parser: argparse.ArgumentParser) -> None:
    """Who is late: kept with the results, so that it is said once."""
    parser.add_argument(
        "--closes",
        metavar="DATE",
        help="when nobody hands in any more, late ones included (default: the last due date)",
    )
    add_late(parser)
    parser.add_argument("--extensions", type=Path, metavar="FILE", help="a table: student_id, until, reason")
    parser.add_argument(
        "--times", type=Path, metavar="FILE", help="a table: student_id, handed_in; where no platform tells it"
    )


def rules_of(options: argparse.Namespace) -> Rules:
    """What the options say about dates and feedback."""
    from autograder.grading.late import read_due
    from autograder.grading.rules import Rules

    for date in (options.due, options.closes):
        if date:
            read_due(date)
    return Rules(
        due=options.due,
        closes=options.closes,
        feedback=options.feedback,
        extensions=options.extensions,
        times=options.times,
        **late_options(options),
    )


def add_gradebook(parser: argparse.ArgumentParser) -> None:
    """Where people's grades are kept, if not in the sheet."""
    parser.add_argument("--gradebook", metavar="URL", help="enter the scores here: an nbgrader course, or its database")


def _grade(options: argparse.Namespace, tell: Tell) -> Done:
    if not options.scheduler:
        start_ahead(options.sandbox)  # while we import torch, its own process does too
    from autograder.grading.outputs import SUMMARY, status_of
    from autograder.grading.run import Run, run

    finished = run(
        Run(
            source=options.submissions,
            homework=options.assignment,
            out=options.out,
            jobs=options.jobs,
            sandbox=options.sandbox,
            scheduler=options.scheduler,
            only=options.only,
            question=options.question,
            seed=options.seed,
            regrade=options.regrade,
            public_only=options.public_only,
            dry_run=options.dry_run,
            replace=options.replace,
            roster=options.roster,
            worker_memory=int(options.worker_memory * 2**30),
            rules=rules_of(options),
        ),
        tell,
        desk=desk_of(options.gradebook),
    )
    troubled = {o.student: "; ".join(o.told) for o in finished.outcomes if o.status == "infrastructure"}
    reports = {outcome.student: finished.report(outcome) for outcome in finished.outcomes}
    totals = {student: report.total for student, report in reports.items()}
    mean = sum(totals.values()) / len(totals) if totals else None
    grades = options.out / "grades.csv"
    tell(
        f"{len(totals)} submissions, {finished.graded} graded now"
        + (f", mean {mean:.1f}" if mean is not None else "")
        + ("." if options.dry_run else f". Grades: {grades}")
    )
    tell(told(finished.assumptions, f"{options.out / SUMMARY}, and the report"))
    for student, notes in troubled.items():
        tell(f"Not graded for a fault of ours: {student}: {notes}")
    code = INTERRUPTED if finished.interrupted else FAILED if troubled else OK
    facts = {
        "homework": options.assignment,
        "box": finished.sandbox,
        "grades": str(grades),
        "feedback": finished.people.level,
        "graded_now": finished.graded,
        "mean_total": None if mean is None else round(mean, 2),
        "students": {
            o.student: {"total": totals[o.student], "final": reports[o.student].final, "status": status_of(o)}
            for o in finished.outcomes
        },
        "troubled": troubled,
        "assumptions": [one.to_json() for one in finished.assumptions],
    }
    if options.regrade:
        facts |= {"changes": [change.to_json() for change in finished.changes], "applied": not options.dry_run}
    return Done(code, facts)


def desk_of(gradebook: str | None) -> Desk | None:
    """The gradebook that was named; none: the sheet in the results."""
    if gradebook is None:
        return None
    from autograder.frontends.gradebook import GradebookDesk

    return GradebookDesk(gradebook)


def _recompute(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.grading.outputs import SUMMARY
    from autograder.grading.recompute import recompute

    done = recompute(options.results, options.dry_run, tell, desk_of(options.gradebook), rules_of(options))
    for remark in done.remarks:
        tell(remark)
    ended = recomputed(done, options.results, tell)
    tell(told(done.assumptions, f"{options.results / SUMMARY}, and the report"))
    return ended


def recomputed(done: Recomputed, results: Path, tell: Tell) -> Done:
    """How a command ends that computed grades anew."""
    grades = results / "grades.csv"
    tell(f"{done.students} submissions. Grades: {grades}" if done.applied else "Nothing is written.")
    changes = [change.to_json() for change in done.changes]
    return Done(OK, asdict(done) | {"changes": changes, "grades": str(grades)})


def _replay(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.grading.replay import replay

    replayed = replay(options.result, options.out, options.submissions, tell)
    return Done(OK if replayed.same else FAILED, asdict(replayed) | {"same": replayed.same})


def _report(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.classroom.report import write_report

    path = shown(write_report(options.out, options.submissions))
    tell(f"Open {path}")
    return Done(OK, {"path": path})
