"""Commands for the tools in which a course may live: nbgrader init, otter, gradescope."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from autograder.commands.common import OK, Commands, Done, Tell, command, group, named, take_homework
from autograder.commands.grading import add_feedback, add_late, late_options
from autograder.places import BUILD, shown


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    example = "autograder nbgrader init my_course hwN_topic"
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
        "autograder otter out hwN_topic",
    )  # fmt: skip
    otter.add_argument("out", type=Path, help="the zip becomes OUT/<homework>/autograder.zip")
    take_homework(otter, several=True)
    add_feedback(otter)
    otter.add_argument(
        "--decided", type=Path, metavar="RESULTS",
        help="keep to what was decided in this folder of results: dates, lateness, extensions, times, waived cases",
    )  # fmt: skip

    gradescope = command(
        commands, "gradescope", _gradescope, "write the zip for a Gradescope autograder",
        "autograder gradescope hwN_topic --late 10 --attempts 20",
    )  # fmt: skip
    take_homework(gradescope)
    gradescope.add_argument("--out", type=Path, default=BUILD / "gradescope", help="folder (default: build/gradescope)")
    gradescope.add_argument("--attempts", type=int, default=0, help="that are graded (default: any number)")
    add_late(gradescope)
    gradescope.add_argument(
        "--hidden", default="after_published", choices=["visible", "after_due_date", "after_published", "hidden"],
        help="when students see hidden cases (default: after_published)",
    )  # fmt: skip
    gradescope.add_argument(
        "--feedback", choices=["full", "teaching", "verdicts"], help="on hidden cases (default: by Gradescope's dates)"
    )
    gradescope.add_argument(
        "--decided", type=Path, metavar="RESULTS", help="keep to the cases that were waived in this folder of results"
    )


def _nbgrader_init(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.nbgrader import init

    names = named(options.homework)
    changed = init(options.course, names, options.db_url)
    tell(f"{options.course}: an nbgrader course; {len(changed)} files changed. Next, in that folder:")
    for name in names:
        tell(f"  nbgrader generate_assignment {name} --force")
    return Done(OK, {"course": str(options.course), "homeworks": names, "changed": [str(path) for path in changed]})


def _otter(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.judged import decisions
    from autograder.frontends.otter import otter_zip
    from autograder.grading.late import read_due
    from autograder.homework import read_homework

    if options.due:
        read_due(options.due)

    paths = []
    for name in named(options.homework):
        decided = decisions(options.decided)
        paths.append(shown(otter_zip(read_homework(name), options.out, options.feedback, options.due, decided)))
        tell(paths[-1])
    return Done(OK, {"paths": paths})


def _gradescope(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.gradescope import bundle
    from autograder.frontends.gradescope_run import Settings
    from autograder.frontends.judged import decisions
    from autograder.grading.late import LatePolicy
    from autograder.grading.waivers import WAIVERS
    from autograder.homework import read_homework

    late = LatePolicy(**{name: value for name, value in late_options(options).items() if value is not None})
    settings = Settings(options.homework, options.hidden, options.attempts, late, options.feedback)
    settings = replace(settings, decided=decisions(options.decided, (WAIVERS,)))
    path = shown(bundle(read_homework(options.homework), options.out, settings))
    tell(path)
    return Done(OK, {"path": path})
