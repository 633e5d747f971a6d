"""Commands after grading: waive, comment, export, handback, forget."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from autograder.commands.common import FAILED, OK, Commands, Done, Tell, command
from autograder.commands.grading import add_gradebook, desk_of, recomputed
from autograder.errors import BadInput


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    waive = command(
        commands, "waive", _waive, "a test turned out bad: full marks on it for all, or left out where it failed",
        'autograder waive results q1_7/test_heads --how drop --why "It asked for more than the text."',
    )  # fmt: skip
    _take_results(waive)
    waive.add_argument("case", help="q1_7/test_heads; with [variation] that one alone; q1_7: all of its cases")
    waive.add_argument("--how", choices=["full", "drop"], help="full marks for all; or not counted where it failed")
    waive.add_argument("--why", help="a sentence that students read on their pages")
    waive.add_argument("--undo", action="store_true", help="take it back")
    waive.add_argument("--dry-run", action="store_true", help="only tell whose score would change")
    add_gradebook(waive)

    comment = command(
        commands, "comment", _comment, "write a comment on a student's page, or on one question of it",
        'autograder comment results ada "Well argued." --question q1_14 --score 6',
    )  # fmt: skip
    _take_results(comment)
    comment.add_argument("student")
    comment.add_argument("text", help="what the student reads; an empty one takes the comment back")
    comment.add_argument("--question", help="the question it is about (default: the whole page)")
    comment.add_argument("--score", type=float, help="a score too, which wins over the judge's (default: none)")

    export = command(
        commands, "export", _export, "write grades in the columns that a grade book imports",
        "autograder export results --to canvas --roster canvas.csv",
    )  # fmt: skip
    _take_results(export)
    export.add_argument("--to", required=True, choices=["canvas", "gradescope", "csv", "nbgrader"])
    export.add_argument("--roster", type=Path, help="the class as that system exports it")
    export.add_argument("--column", help="Canvas: the assignment's column in the roster, by its name or number")
    export.add_argument("--out", type=Path, help="file (default: DIR/<to>.csv)")

    handback = command(
        commands, "handback", _handback, "write every student's page where they get it",
        "autograder handback results --to pages.zip",
    )  # fmt: skip
    _take_results(handback)
    handback.add_argument("--to", type=Path, required=True, metavar="DIR|ZIP", help="a folder, or one zip")
    handback.add_argument(
        "--layout", default="folders", choices=["folders", "zips", "canvas"],
        help="a folder or zip per student, or files as Canvas takes them as feedback (default: folders)",
    )  # fmt: skip

    forget = command(
        commands, "forget", _forget, "delete a student's data from a folder of results",
        "autograder forget ada results",
    )  # fmt: skip
    forget.add_argument("student")
    _take_results(forget)


def _take_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="DIR", help="the folder that `grade` wrote")


def _waive(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.grading.say import unwaive, waive

    desk = desk_of(options.gradebook)
    if options.undo:
        return recomputed(unwaive(options.results, options.case, options.dry_run, tell, desk), options.results, tell)
    if not options.how or not options.why:
        raise BadInput("Give --how full or --how drop, and --why with a sentence that students read; or --undo.")
    done = waive(options.results, options.case, options.how, options.why, options.dry_run, tell, desk)
    return recomputed(done, options.results, tell)


def _comment(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.grading.say import comment

    done = comment(options.results, options.student, options.text, options.question, options.score, tell)
    return recomputed(done, options.results, tell)


def _export(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.exports import export

    done = export(options.results, options.to, options.roster, options.out, options.column)
    for note in done.notes:
        tell(note)
    tell(f"{done.path}: {done.rows} rows.")
    if done.missing:
        tell(f"In the roster, but without a submission: {'; '.join(done.missing)}.")
    if done.unknown:
        tell(f"Graded, but not in the roster, see {done.path.stem}-unknown.csv: {'; '.join(done.unknown)}.")
    if done.refused:
        tell(f"Left out, since the grade may be another's; give each a row and an id: {'; '.join(done.refused)}.")
    return Done(FAILED if done.unknown or done.refused else OK, asdict(done) | {"path": str(done.path)})


def _handback(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.frontends.handback import handback

    done = handback(options.results, options.to, options.layout)
    tell(f"{done.path}: the pages of {len(done.students)} students.")
    if done.without:
        tell(f"Not among them: {'; '.join(done.without)}.")
    return Done(FAILED if done.without else OK, asdict(done) | {"path": str(done.path)})


def _forget(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.grading.forget import forget

    done = forget(options.results, options.student, tell)
    tell(f"{done.student} is taken out of {', '.join(done.changed) or 'nothing'}.")
    if done.removed:
        tell(f"Deleted: {', '.join(done.removed)}. Report and exports are written again by their commands.")
    if done.mentioned:
        tell(f"The id still stands in: {', '.join(done.mentioned)}. Look there yourself.")
    tell("Not reached from here:")
    for place in done.elsewhere:
        tell(f"  {place}")
    tell("As long as what was handed in is there, `autograder grade` grades it again.")
    return Done(FAILED if done.mentioned else OK, asdict(done))
