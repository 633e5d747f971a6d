"""Commands to find one's way: doctor, demo, example, completion."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from autograder.commands.common import FAILED, OK, Commands, Done, Tell, command, group, take_homework
from course_utils.terminal.completion import SHELLS, completion_script


def add(commands: Commands, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add these commands to the parser, which `completion` asks for."""
    command(commands, "doctor", _doctor, "show which boxes work here and what each guarantees", "autograder doctor")
    demo = group(commands, "demo", "build, release and grade the example class", "autograder demo")
    demo.set_defaults(run=_demo)
    example = command(
        commands, "example", _example, "write an example class of a homework, with its roster, to try commands on",
        "autograder example hwN_topic class",
    )  # fmt: skip
    take_homework(example)
    example.add_argument("folder", type=Path, help="gets canvas.csv and submissions/<student>.zip")
    example.add_argument(
        "--nbgrader", action="store_true", help="as nbgrader collects them: submitted/<student>/<homework>/"
    )
    completion = group(
        commands, "completion", "print a script that lets your shell complete these commands",
        'eval "$(autograder completion bash)"',
    )  # fmt: skip
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(run=lambda options, tell: _completion(options.shell, parser(), tell))


def _doctor(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.box.backends import BACKENDS, guarantees
    from autograder.box.sandbox import STRONG, trouble

    boxes = {}
    for name, backend in BACKENDS.items():
        reason = trouble(name)
        holds = list(guarantees(name)) if reason is None else []
        tell(f"{name:12}{'works' if reason is None else 'does not work here: ' + reason}  ({backend.summary})")
        for guarantee in holds:
            tell(f"{'':12}- {guarantee}")
        boxes[name] = {"works": reason is None, "trouble": reason, "summary": backend.summary, "guarantees": holds}
    chosen = next((name for name in STRONG if boxes[name]["works"]), None)
    tell(f"`--sandbox auto` uses {chosen}." if chosen else "`--sandbox auto` finds nothing strong enough here.")
    return Done(OK if chosen else FAILED, {"boxes": boxes, "auto": chosen})


def _demo(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.demo import demo

    return Done(demo())


def _example(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.example_class import write_example
    from autograder.homework import read_homework

    made = write_example(read_homework(options.homework), options.folder, options.nbgrader)
    tell(f"{made.submissions}: {len(made.students)} submissions. Their roster, as Canvas has it: {made.roster}")
    facts = {"submissions": str(made.submissions), "roster": str(made.roster), "students": made.students}
    return Done(OK, facts)


def _completion(shell: str, parser: argparse.ArgumentParser, tell: Tell) -> Done:
    tell(completion_script(parser, shell))
    return Done()
