"""Runs commands for tests, each in a fork of one process that has imported everything: seconds saved per command.

Started by the fixture `commands` with AUTOGRADER_COURSE set. A JSON line comes in, {"argv": [...], "cwd": "..."}, and
one goes out: the exit code, standard output and standard error.
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

import course_utils.cli
from autograder.cli import main as autograder_main

SLOW = ("builder.execute", "classroom.report", "frontends.exports", "frontends.gradebook", "grading.run", "verify")
for module in SLOW:
    importlib.import_module(f"autograder.{module}")


def nbgrader(arguments: Sequence[str]) -> int:
    """nbgrader's own command line."""
    from jupyter_core.application import NoStart
    from nbgrader.apps import NbGraderApp

    app = NbGraderApp.instance()
    app.initialize(list(arguments))
    with contextlib.suppress(NoStart):  # raised when the subcommand is done
        app.start()
    return 0


PROGRAMS = {"autograder": autograder_main, "course": course_utils.cli.main, "nbgrader": nbgrader}


def run(argv: list[str], cwd: str) -> dict[str, object]:
    """One command, as a process of its own would run it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if argv[0] in PROGRAMS:
            code = _forked(argv, cwd, out.fileno(), err.fileno())
        else:
            code = subprocess.run(argv, cwd=cwd, stdout=out, stderr=err, stdin=subprocess.DEVNULL).returncode
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return {"code": code, "out": texts[0], "err": texts[1]}


def _forked(argv: list[str], cwd: str, out: int, err: int) -> int:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(cwd)
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
