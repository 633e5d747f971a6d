"""The staff's command line: `autograder build | release | verify | ...`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from autograder.commands.common import BAD_INPUT, FAILED, INTERRUPTED, OK, Done
from autograder.errors import BadInput
from autograder.judge.verdicts import Infrastructure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a check that failed, 2 input that cannot be used, 130 an interruption."""
    as_json = False
    try:
        options = parser().parse_args(arguments)
        as_json = getattr(options, "json", False)
        done = options.run(options, _to_stderr if as_json else print)
    except BadInput as error:
        done = _failed(BAD_INPUT, str(error))
    except Infrastructure as error:
        done = _failed(FAILED, str(error))
    except KeyboardInterrupt:
        done = _failed(INTERRUPTED, "Stopped.")
    except BrokenPipeError:
        return OK
    if as_json:
        print(json.dumps({"exit": done.code} | done.facts, indent=1))
    return int(done.code)


def parser() -> argparse.ArgumentParser:
    """The commands and their options; `BadInput` where the course at hand has a broken course.toml."""
    from autograder.commands import authoring, frontends, grading, handing, machine

    made = argparse.ArgumentParser(
        prog="autograder",
        description="Build, check and grade the course's homeworks.",
        epilog="Example: autograder grade --help",
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    authoring.add(commands)
    grading.add(commands)
    handing.add(commands)
    frontends.add(commands)
    machine.add(commands, parser)
    return made


def _failed(code: int, error: str) -> Done:
    _to_stderr(error)
    return Done(code, {"error": error})


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)
