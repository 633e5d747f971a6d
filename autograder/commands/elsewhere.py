"""Commands for the tools in which a course may live: nbgrader init, otter, gradescope."""

from __future__ import annotations

import argparse
from pathlib import Path

from autograder.commands.common import OK, Commands, Done, Tell, command, group, named, take_homework
from autograder.places import BUILD, shown


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    example = "autograder nbgrader init my_course hw1_attention"
    nbgrader = group(commands, "nbgrader", "work with nbgrader", example)
    init = command(
        nbgrader.add_subparsers(required=True, metavar="ACTION"), "init", _nbgrader_init,
        "lay out an nbgrader course whose autograde is the judge", example,
    )  # fmt: skip
    init.add_argument("course", type=Path, help="the course's folder, new or made by this command before")
    take_homework(init, several=True)
    init.add_argument("--db-url", help="a database, such as postgresql://... (default: gradebook.db in the folder)")

    otter = command(
        commands, "otter", _otter, "write autograder.zip files for otter, graded by the judge",
        "autograder otter out hw1_attention",
    )  # fmt: skip
    otter.add_argument("out", type=Path, help="the zip becomes OUT/<homework>/autograder.zip")
    take_homework(otter, several=True)

    gradescope = command(
        commands, "gradescope", _gradescope, "write the zip for a Gradescope autograder",
        "autograder gradescope hw1_attention --late 10 --attempts 20",
    )  # fmt: skip
    take_homework(gradescope)
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


def _nbgrader_init(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.nbgrader import init

    names = named(options.homework)
    changed = init(options.course, names, options.db_url)
    tell(f"{options.course}: an nbgrader course; {len(changed)} files changed. Next, in that folder:")
    for name in names:
        tell(f"  nbgrader generate_assignment {name} --force")
    return Done(OK, {"course": str(options.course), "homeworks": names, "changed": [str(path) for path in changed]})


def _otter(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.otter import otter_zip
    from autograder.homework import read_homework

    paths = []
    for name in named(options.homework):
        paths.append(shown(otter_zip(read_homework(name), options.out)))
        tell(paths[-1])
    return Done(OK, {"paths": paths})


def _gradescope(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.gradescope import bundle
    from autograder.frontends.gradescope_run import Settings
    from autograder.frontends.late import LatePolicy
    from autograder.homework import read_homework

    told = {"percent_per_day": options.late, "grace_minutes": options.grace, "most_percent": options.most}
    late = LatePolicy(**{name: value for name, value in told.items() if value is not None})
    settings = Settings(options.homework, options.hidden, options.attempts, late)
    path = shown(bundle(read_homework(options.homework), options.out, settings))
    tell(path)
    return Done(OK, {"path": path})
