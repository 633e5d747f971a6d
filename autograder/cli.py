"""The staff's command line: `autograder build | release | verify | ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.errors import BadInput
from autograder.judge.verdicts import Infrastructure
from autograder.places import ASSIGNMENTS, BUILD, shown

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
    student = {homework.name: student_files(homework) for homework in homeworks}
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
        write(staff_files(homework, files), [BUILD / homework.name])
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
    from autograder.grading.outputs import report_of
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
        )
    )
    troubled = [outcome for outcome in finished.outcomes if outcome.status == "infrastructure"]
    totals = [report_of(finished.homework, outcome).total for outcome in finished.outcomes]
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


def _replay(options: argparse.Namespace) -> int:
    from autograder.grading.replay import replay

    return replay(options.result, options.out, options.submissions)


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
