"""The staff's command line: `autograder build | release | verify | ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.errors import BadInput
from autograder.places import ASSIGNMENTS, BUILD, shown

OK, FAILED, BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a check that failed, 2 input that cannot be used."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BadInput as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
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
        commands, "verify", _verify, "prove the suites with their mistakes and variants", "autograder verify hw1_attention"
    )
    verify.add_argument("homework", nargs="*", help="default: all")
    verify.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    verify.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    verify.add_argument("--question", help="prove this one alone")
    return parser


def _command(commands: argparse._SubParsersAction, name: str, run: object, text: str, example: str) -> argparse.ArgumentParser:  # type: ignore[type-arg]
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, epilog=f"Example: {example}")
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
        print(f"{homework.name}: {len(files)} files, {len(changed)} changed; for staff: {shown(BUILD / homework.name)}/")
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
    print("Every mistake loses points and is named, every right variant keeps them all." if not misses else f"{len(misses)} misses.")
    return FAILED if misses else OK
