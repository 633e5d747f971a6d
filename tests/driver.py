"""Runs commands for tests, each in a fork of one process that has imported what others wrote: that saves seconds.

Our own modules are imported by each command anew, since they read the environment. Boxes of commands that grade are
forks of one zygote, started with the first of them, where the walls are those that the command would build itself.
Started by the fixture `commands`: a JSON line comes in, {"argv": [...], "cwd": "...", "env": {...}}, and one goes out:
the exit code, standard output and standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

OURS = ("autograder", "course_utils")
OPEN_BOXES = ("grade", "replay")  # commands
SLOW = ("builder.execute", "classroom.report", "frontends.exports", "frontends.gradebook", "grading.run", "verify")
for module in SLOW:
    importlib.import_module(f"autograder.{module}")
KEEPER = importlib.import_module("autograder.box.keeper")
for module in [name for name in sys.modules if name.partition(".")[0] in OURS]:
    del sys.modules[module]


class Lent:
    """A zygote of the process that runs the commands, as a command sees it: it can be forked, and not be ended."""

    def __init__(self, keeper: Any) -> None:
        self._control, self._errors, self._plan = keeper._control, keeper._errors, keeper._plan

    def close(self) -> None:
        """Its owner does."""


def lend_zygotes() -> None:
    """Let the boxes of this command come from the zygote that runs already, if its walls are the same."""
    from autograder.box import keeper

    for backend, started in KEEPER.STARTED.items():
        mine, wanted = asdict(started._plan), asdict(keeper.plan_for(backend))
        if mine | {"first_user": 0} == wanted | {"first_user": 0}:
            keeper.STARTED[backend] = Lent(started)


def autograder(arguments: Sequence[str]) -> int:
    """The staff's command line."""
    from autograder.cli import main
    from autograder.errors import BadInput

    if arguments[0] in OPEN_BOXES:
        with contextlib.suppress(BadInput):  # the command will tell
            lend_zygotes()
    return main(arguments)


def course(arguments: Sequence[str]) -> int:
    """The students' command line."""
    from course_utils.terminal.main import main

    return main(arguments)


def nbgrader(arguments: Sequence[str]) -> int:
    """nbgrader's own command line."""
    from jupyter_core.application import NoStart
    from nbgrader.apps import NbGraderApp

    app = NbGraderApp.instance()
    app.initialize(list(arguments))
    with contextlib.suppress(NoStart):  # raised when the subcommand is done
        app.start()
    return 0


PROGRAMS = {"autograder": autograder, "course": course, "nbgrader": nbgrader}


def run(argv: list[str], cwd: str, env: dict[str, str]) -> dict[str, object]:
    """One command, as a process of its own would run it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if argv[0] in PROGRAMS:
            if argv[0] == "autograder" and argv[1] in OPEN_BOXES and not KEEPER.STARTED:
                KEEPER.start_ahead("auto")
            code = _forked(argv, cwd, env, out.fileno(), err.fileno())
        else:
            place = {"cwd": cwd, "env": os.environ | env}
            code = subprocess.run(argv, stdout=out, stderr=err, stdin=subprocess.DEVNULL, **place).returncode
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return {"code": code, "out": texts[0], "err": texts[1]}


def _forked(argv: list[str], cwd: str, env: dict[str, str], out: int, err: int) -> int:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(cwd)
        os.environ.update(env)
        sys.argv = argv
        code = int(PROGRAMS[argv[0]](argv[1:]) or 0)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
