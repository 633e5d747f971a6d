"""Commands for a class: grade, recompute, replay, report, export."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.box.keeper import start_ahead
from autograder.commands.common import FAILED, INTERRUPTED, OK, Commands, Done, Tell, command
from autograder.homework import homework_names
from autograder.places import shown
from course_utils.completion import offer

if TYPE_CHECKING:
    from autograder.grading.by_hand import Desk


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    _add_grade(commands)

    recompute = command(
        commands, "recompute", _recompute, "compute scores anew after a change of points or weights; nothing is run",
        "autograder recompute results --dry-run",
    )  # fmt: skip
    recompute.add_argument("results", type=Path, metavar="DIR", help="the folder that `grade` wrote")
    recompute.add_argument("--dry-run", action="store_true", help="only tell whose score would change")
    _add_gradebook(recompute)

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

    export = command(
        commands, "export", _export, "write grades in the columns that a grade book imports",
        "autograder export results --to canvas --roster canvas.csv",
    )  # fmt: skip
    export.add_argument("results", type=Path, metavar="DIR", help="the folder that `grade` wrote")
    export.add_argument("--to", required=True, choices=["canvas", "gradescope", "csv", "nbgrader"])
    export.add_argument("--roster", type=Path, help="the class as that system exports it")
    export.add_argument("--out", type=Path, help="file (default: DIR/<to>.csv)")


def _add_grade(commands: Commands) -> None:
    grade = command(
        commands, "grade", _grade, "grade submissions in boxes",
        "autograder grade submissions.zip --assignment hw1_attention --out results",
    )  # fmt: skip
    grade.add_argument("submissions", type=Path, help="a folder, a zip, a Gradescope or Canvas export, or one notebook")
    offer(grade.add_argument("--assignment", required=True, help="the homework"), homework_names)
    grade.add_argument("--out", type=Path, required=True, help="folder for journal, grades and feedback")
    grade.add_argument("--jobs", type=int, default=0, help="processes (default: one per core)")
    grade.add_argument("--sandbox", default="auto", choices=["auto", "bwrap", "namespaces", "process"])
    grade.add_argument("--scheduler", help="a Dask scheduler, such as tcp://host:8786, instead of processes here")
    grade.add_argument("--only", metavar="STUDENT", help="grade this one alone")
    grade.add_argument("--question", help="grade this question alone")
    grade.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    grade.add_argument("--public-only", action="store_true", help="only the checks that students have: a quick look")
    _add_gradebook(grade)
    grade.add_argument(
        "--regrade", action="store_true", help="grade again what is graded; score changes are told first"
    )
    grade.add_argument(
        "--dry-run", action="store_true", help="with --regrade: tell the score changes, and apply nothing"
    )


def _add_gradebook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gradebook", metavar="URL", help="enter the scores here: an nbgrader course, or its database")


def _grade(options: argparse.Namespace, tell: Tell) -> Done:
    if not options.scheduler:
        start_ahead(options.sandbox)  # while we import torch, its own process does too
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
        ),
        tell,
        desk=_desk(options.gradebook),
    )
    troubled = {o.student: "; ".join(o.notes) for o in finished.outcomes if o.status == "infrastructure"}
    totals = {outcome.student: finished.report(outcome).total for outcome in finished.outcomes}
    mean = sum(totals.values()) / len(totals) if totals else None
    grades = options.out / "grades.csv"
    tell(
        f"{len(totals)} submissions, {finished.graded} graded now"
        + (f", mean {mean:.1f}" if mean is not None else "")
        + ("." if options.dry_run else f". Grades: {grades}")
    )
    for student, notes in troubled.items():
        tell(f"Not graded for a fault of ours: {student}: {notes}")
    code = INTERRUPTED if finished.interrupted else FAILED if troubled else OK
    facts = {
        "homework": options.assignment,
        "box": finished.sandbox,
        "grades": str(grades),
        "graded_now": finished.graded,
        "mean_total": None if mean is None else round(mean, 2),
        "students": {o.student: {"total": totals[o.student], "status": o.status} for o in finished.outcomes},
        "troubled": troubled,
    }
    if options.regrade:
        facts |= {"changes": [change.to_json() for change in finished.changes], "applied": not options.dry_run}
    return Done(code, facts)


def _desk(gradebook: str | None) -> Desk | None:
    if gradebook is None:
        return None
    from autograder.frontends.gradebook import GradebookDesk

    return GradebookDesk(gradebook)


def _recompute(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.grading.recompute import recompute

    done = recompute(options.results, options.dry_run, tell, _desk(options.gradebook))
    grades = options.results / "grades.csv"
    tell("Nothing is written." if options.dry_run else f"{done.students} submissions. Grades: {grades}")
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


def _export(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.exports import export

    done = export(options.results, options.to, options.roster, options.out)
    tell(f"{done.path}: {done.rows} rows.")
    if done.missing:
        tell(f"In the roster, but without a submission: {', '.join(done.missing)}.")
    if done.unknown:
        tell(f"Graded, but not in the roster, see {done.path.stem}-unknown.csv: {', '.join(done.unknown)}.")
    return Done(FAILED if done.unknown else OK, asdict(done) | {"path": str(done.path)})
