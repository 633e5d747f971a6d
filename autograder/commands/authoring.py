"""Commands for authors and TAs: build, release, verify, solutions run."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from autograder.commands.common import FAILED, OK, Commands, Done, Tell, command, group, named, take_homework
from autograder.places import ASSIGNMENTS, BUILD, shown


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    build = command(commands, "build", _build, "make assignments/ from solutions/", "autograder build hw1_attention")
    take_homework(build, several=True)
    build.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that are stale")
    build.add_argument("--anew", action="store_true", help="compute every fingerprint again")

    release = command(
        commands, "release", _release, "write the zip that students get", "autograder release hw1_attention"
    )
    take_homework(release)
    release.add_argument("--out", type=Path, default=BUILD / "release", help="folder (default: build/release)")

    verify = command(
        commands, "verify", _verify, "prove the suites with their mistakes and variants",
        "autograder verify hw1_attention --question q1_7",
    )  # fmt: skip
    take_homework(verify, several=True)
    verify.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    verify.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    verify.add_argument("--question", help="prove this one alone")

    example = "autograder solutions run hw1_attention --fast"
    solutions = group(commands, "solutions", "run the solution notebooks", example)
    run = command(
        solutions.add_subparsers(required=True, metavar="ACTION"), "run", _solutions_run,
        "run the solution notebooks in a real kernel and write them with their outputs, as .ipynb and as HTML", example,
    )  # fmt: skip
    take_homework(run, several=True)
    run.add_argument("--fast", action="store_true", help="short training runs, to see that everything works")
    run.add_argument("--out", type=Path, help="folder (default: build/<homework>/solution)")
    run.add_argument("--cell-seconds", type=float, default=3600, help="most seconds for one cell (default: 3600)")


def _build(options: argparse.Namespace, tell: Tell) -> Done:
    import torch

    from autograder.builder.files import as_built, staff_files, student_files
    from autograder.builder.write import stale, write
    from autograder.homework import read_homework

    torch.set_num_threads(1)  # tensors are small: a second thread would only wait, loudly
    homeworks = [read_homework(name) for name in named(options.homework)]
    student = {homework.name: student_files(homework, options.anew) for homework in homeworks}
    if options.check:
        old = [path for name, files in student.items() for path in stale(files, [ASSIGNMENTS / name])]
        for path in old:
            tell(f"{shown(path)} is stale. Run `autograder build` and commit the result.")
        if not old:
            tell(f"assignments/ is up to date ({', '.join(student)}).")
        return Done(FAILED if old else OK, {"homeworks": list(student), "stale": [shown(path) for path in old]})
    changed = {}
    for homework in homeworks:
        files, folder = student[homework.name], BUILD / homework.name
        changed[homework.name] = [shown(path) for path in write(files, [ASSIGNMENTS / homework.name])]
        if not as_built(homework):
            write(staff_files(homework), [folder])
        tell(f"{homework.name}: {len(files)} files, {len(changed[homework.name])} changed; for staff: {shown(folder)}/")
    return Done(OK, {"homeworks": list(student), "changed": changed})


def _release(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.builder.release import release

    path = shown(release(options.homework, options.out))
    tell(path)
    return Done(OK, {"path": path})


def _verify(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.verify import verify

    tables = verify(named(options.homework), options.jobs, options.seed, options.question)
    for table in tables:
        tell("\n".join(table.lines()))
    misses = [miss for table in tables for miss in table.misses]
    for miss in misses:
        tell(f"MISS {miss}")
    tell(
        "Every mistake loses points and is named, every right variant keeps them all."
        if not misses
        else f"{len(misses)} misses."
    )
    rows = {table.homework.name: [asdict(row) for row in table.rows()] for table in tables}
    return Done(FAILED if misses else OK, {"homeworks": rows, "misses": misses})


def _solutions_run(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.builder.execute import code_cells, execute_solution
    from autograder.homework import read_homework
    from autograder.progress import Progress

    homeworks = [read_homework(name) for name in named(options.homework)]
    executed = []
    for homework in homeworks:
        out = options.out or BUILD / homework.name / "solution"
        with Progress(code_cells(homework), "cell", "cells run", homework.name) as progress:
            done = execute_solution(homework, out, options.fast, options.cell_seconds, progress.step)
        executed.append(done)
        for failure in done.failures:
            tell(f"{homework.name}, {failure}")
        state = f"{len(done.failures)} failed" if done.failures else f"all {done.checks} checks green"
        tell(f"{homework.name}: {done.cells} cells in {done.seconds:.0f} s, {state}. Open {shown(done.page)}")
    facts = [
        asdict(done) | {"notebook": shown(done.notebook), "page": shown(done.page)} for done in executed
    ]  # fmt: skip
    failed = any(done.failures for done in executed)
    return Done(FAILED if failed else OK, {"fast": options.fast, "solutions": facts})
