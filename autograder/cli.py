"""The staff's command line: `autograder build | release | verify | ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.box.keeper import start_ahead
from autograder.errors import BadInput
from autograder.judge.verdicts import Infrastructure
from autograder.places import ASSIGNMENTS, BUILD, shown

if TYPE_CHECKING:
    from autograder.grading.by_hand import Desk

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a check that failed, 2 input that cannot be used."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BadInput as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except Infrastructure as error:
        print(error, file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograder", description="Build, check and grade the course's homeworks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = _command(commands, "build", _build, "make assignments/ from solutions/", "autograder build hw1_attention")
    build.add_argument("homework", nargs="*", help="default: all")
    build.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that are stale")
    build.add_argument("--anew", action="store_true", help="compute every fingerprint again")

    release = _command(
        commands, "release", _release, "write the zip that students get", "autograder release hw1_attention"
    )
    release.add_argument("homework")
    release.add_argument("--out", type=Path, default=BUILD / "release", help="folder (default: build/release)")

    verify = _command(
        commands,
        "verify",
        _verify,
        "prove the suites with their mistakes and variants",
        "autograder verify hw1_attention",
    )
    verify.add_argument("homework", nargs="*", help="default: all")
    verify.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    verify.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    verify.add_argument("--question", help="prove this one alone")

    grade = _command(
        commands, "grade", _grade, "grade submissions in boxes",
        "autograder grade submissions.zip --assignment hw1_attention --out results",
    )  # fmt: skip
    grade.add_argument("submissions", type=Path, help="a folder, a zip, a Gradescope or Canvas export, or one notebook")
    grade.add_argument("--assignment", required=True, help="the homework")
    grade.add_argument("--out", type=Path, required=True, help="folder for journal, grades and feedback")
    grade.add_argument("--jobs", type=int, default=0, help="processes (default: one per core)")
    grade.add_argument("--sandbox", default="auto", choices=["auto", "bwrap", "namespaces", "process"])
    grade.add_argument("--scheduler", help="a Dask scheduler, such as tcp://host:8786, instead of processes here")
    grade.add_argument("--only", metavar="STUDENT", help="grade this one alone")
    grade.add_argument("--question", help="grade this question alone")
    grade.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    grade.add_argument("--public-only", action="store_true", help="only the checks that students have: a quick look")
    grade.add_argument("--gradebook", metavar="URL", help="enter the scores here: an nbgrader course, or its database")
    grade.add_argument(
        "--regrade", action="store_true", help="grade again what is graded; score changes are told first"
    )

    replay = _command(
        commands, "replay", _replay, "run one case again and show both sides' values",
        "autograder replay wrong-axis/q1_7/test_values --out results --submissions submissions.zip",
    )  # fmt: skip
    replay.add_argument("result", help="the id that the feedback quotes: <student>/<question>/<case>")
    replay.add_argument("--out", type=Path, required=True, help="the folder that `grade` wrote")
    replay.add_argument("--submissions", type=Path, required=True, help="what `grade` was given")

    nbgrader = commands.add_parser("nbgrader", help="work with nbgrader").add_subparsers(
        required=True, metavar="ACTION"
    )
    init = _command(
        nbgrader, "init", _nbgrader_init, "lay out an nbgrader course whose autograde is the judge",
        "autograder nbgrader init my_course hw1_attention",
    )  # fmt: skip
    init.add_argument("course", type=Path, help="the course's folder, new or made by this command before")
    init.add_argument("homework", nargs="*", help="default: all")
    init.add_argument("--db-url", help="a database, such as postgresql://... (default: gradebook.db in the folder)")

    report = _command(
        commands, "report", _report, "write one page about the whole class: report.html",
        "autograder report results --submissions submissions.zip",
    )  # fmt: skip
    report.add_argument("out", type=Path, metavar="DIR", help="the folder that `grade` wrote")
    report.add_argument("--submissions", type=Path, help="what `grade` was given: compares submissions too")

    otter = _command(
        commands, "otter", _otter, "write autograder.zip files for otter, graded by the judge",
        "autograder otter out hw1_attention",
    )  # fmt: skip
    otter.add_argument("out", type=Path, help="the zip becomes OUT/<homework>/autograder.zip")
    otter.add_argument("homework", nargs="*", help="default: all")

    gradescope = _command(
        commands, "gradescope", _gradescope, "write the zip for a Gradescope autograder",
        "autograder gradescope hw1_attention --late 10 --attempts 20",
    )  # fmt: skip
    gradescope.add_argument("homework")
    gradescope.add_argument("--out", type=Path, default=BUILD / "gradescope", help="folder (default: build/gradescope)")
    gradescope.add_argument("--attempts", type=int, default=0, help="that are graded (default: any number)")
    gradescope.add_argument("--late", type=float, metavar="PERCENT", help="taken off per day begun (default: 10)")
    gradescope.add_argument(
        "--grace", type=float, metavar="MINUTES", help="late by no more costs nothing (default: 15)"
    )
    gradescope.add_argument("--most", type=float, metavar="PERCENT", help="taken off at most (default: 50)")
    gradescope.add_argument(
        "--hidden", default="after_published", choices=["visible", "after_due_date", "after_published", "hidden"],
        help="when students see hidden cases (default: after_published)",
    )  # fmt: skip

    export = _command(
        commands, "export", _export, "write grades in the columns that a grade book imports",
        "autograder export results --to canvas --roster canvas.csv",
    )  # fmt: skip
    export.add_argument("results", type=Path, help="the folder that `grade` wrote")
    export.add_argument("--to", required=True, choices=["canvas", "gradescope", "csv", "nbgrader"])
    export.add_argument("--roster", type=Path, help="the class as that system exports it")
    export.add_argument("--out", type=Path, help="file (default: RESULTS/<to>.csv)")

    _command(commands, "doctor", _doctor, "show which boxes work here and what each guarantees", "autograder doctor")
    _command(commands, "demo", _demo, "build, release and grade the example class", "autograder demo")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: object, text: str, example: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text, epilog=f"Example: {example}")
    parser.set_defaults(run=run)
    return parser


def _names(given: list[str]) -> list[str]:
    from autograder.homework import homework_names

    return given or homework_names()


def _build(options: argparse.Namespace) -> int:
    from autograder.builder.files import staff_files, student_files
    from autograder.builder.write import stale, write
    from autograder.homework import read_homework

    homeworks = [read_homework(name) for name in _names(options.homework)]
    student = {homework.name: student_files(homework, options.anew) for homework in homeworks}
    if options.check:
        old = [path for name, files in student.items() for path in stale(files, [ASSIGNMENTS / name])]
        for path in old:
            print(f"{shown(path)} is stale. Run `autograder build` and commit the result.")
        if not old:
            print(f"assignments/ is up to date ({', '.join(student)}).")
        return FAILED if old else OK
    for homework in homeworks:
        files = student[homework.name]
        changed = write(files, [ASSIGNMENTS / homework.name])
        write(staff_files(homework), [BUILD / homework.name])
        print(
            f"{homework.name}: {len(files)} files, {len(changed)} changed; for staff: {shown(BUILD / homework.name)}/"
        )
    return OK


def _release(options: argparse.Namespace) -> int:
    from autograder.builder.release import release

    print(shown(release(options.homework, options.out)))
    return OK


def _verify(options: argparse.Namespace) -> int:
    from autograder.verify import verify

    tables = verify(_names(options.homework), options.jobs, options.seed, options.question)
    for table in tables:
        print("\n".join(table.lines()))
    misses = [miss for table in tables for miss in table.misses]
    for miss in misses:
        print(f"MISS {miss}")
    print(
        "Every mistake loses points and is named, every right variant keeps them all."
        if not misses
        else f"{len(misses)} misses."
    )
    return FAILED if misses else OK


def _grade(options: argparse.Namespace) -> int:
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
        ),
        desk=_desk(options.gradebook),
    )
    troubled = [outcome for outcome in finished.outcomes if outcome.status == "infrastructure"]
    totals = [finished.report(outcome).total for outcome in finished.outcomes]
    mean = f", mean {sum(totals) / len(totals):.1f}" if totals else ""
    print(
        f"{len(finished.outcomes)} submissions, {finished.graded} graded now{mean}. "
        f"Grades: {options.out / 'grades.csv'}"
    )
    for outcome in troubled:
        print(f"Not graded for a fault of ours: {outcome.student}: {'; '.join(outcome.notes)}")
    if finished.interrupted:
        return INTERRUPTED
    return FAILED if troubled else OK


def _desk(gradebook: str | None) -> Desk | None:
    if gradebook is None:
        return None
    from autograder.frontends.gradebook import GradebookDesk

    return GradebookDesk(gradebook)


def _nbgrader_init(options: argparse.Namespace) -> int:
    from autograder.frontends.nbgrader import init

    changed = init(options.course, _names(options.homework), options.db_url)
    print(f"{options.course}: an nbgrader course; {len(changed)} files changed. Next, in that folder:")
    for name in _names(options.homework):
        print(f"  nbgrader generate_assignment {name} --force")
    return OK


def _otter(options: argparse.Namespace) -> int:
    from autograder.frontends.otter import otter_zip
    from autograder.homework import read_homework

    for name in _names(options.homework):
        print(shown(otter_zip(read_homework(name), options.out)))
    return OK


def _gradescope(options: argparse.Namespace) -> int:
    from autograder.frontends.gradescope import bundle
    from autograder.frontends.gradescope_run import Settings
    from autograder.frontends.late import LatePolicy
    from autograder.homework import read_homework

    told = {"percent_per_day": options.late, "grace_minutes": options.grace, "most_percent": options.most}
    late = LatePolicy(**{name: value for name, value in told.items() if value is not None})
    settings = Settings(options.homework, options.hidden, options.attempts, late)
    print(shown(bundle(read_homework(options.homework), options.out, settings)))
    return OK


def _export(options: argparse.Namespace) -> int:
    from autograder.frontends.exports import export

    done = export(options.results, options.to, options.roster, options.out)
    print(f"{done.path}: {done.rows} rows.")
    if done.missing:
        print(f"In the roster, but without a submission: {', '.join(done.missing)}.")
    if done.unknown:
        print(f"Graded, but not in the roster, see {done.path.stem}-unknown.csv: {', '.join(done.unknown)}.")
    return FAILED if done.unknown else OK


def _replay(options: argparse.Namespace) -> int:
    from autograder.grading.replay import replay

    return replay(options.result, options.out, options.submissions)


def _report(options: argparse.Namespace) -> int:
    from autograder.classroom.report import write_report

    print(f"Open {shown(write_report(options.out, options.submissions))}")
    return OK


def _doctor(options: argparse.Namespace) -> int:
    from autograder.box.backends import BACKENDS, guarantees
    from autograder.box.sandbox import STRONG, trouble

    for name, backend in BACKENDS.items():
        reason = trouble(name)
        print(f"{name:12}{'works' if reason is None else 'does not work here: ' + reason}  ({backend.summary})")
        if reason is None:
            for guarantee in guarantees(name):
                print(f"{'':12}- {guarantee}")
    chosen = next((name for name in STRONG if trouble(name) is None), None)
    print(f"`--sandbox auto` uses {chosen}." if chosen else "`--sandbox auto` finds nothing strong enough here.")
    return OK if chosen else FAILED


def _demo(options: argparse.Namespace) -> int:
    from autograder.demo import demo

    return demo()
