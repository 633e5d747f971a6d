"""Run a function of the course with the answers of a student's notebook, in a Python of its own that one can watch."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from course_utils.terminal.check import plan
from course_utils.terminal.find_work import Work
from course_utils.terminal.refusals import Refusal


def missing_answers(work: Work, names: Collection[str]) -> list[str]:
    """The questions that define these names and are not answered yet, in the order of the notebook."""
    answered = {name for cell in work.notebook.cells for name in cell.defines if name not in cell.stubs}
    return [q.id for q in work.original.questions if any(name in names and name not in answered for name in q.names)]


def run_with_answers(work: Work, function: str, options: Mapping[str, Any]) -> int:
    """Call `module:function` with the notebook's names and these options beside the notebook; its exit code.

    Plots and trainings of the notebook are left out, and what its cells print goes nowhere. The process uses the
    `course_utils` beside the notebook if there is one, as the notebook itself does.
    """
    ours = str(Path(__file__).parent.parent.parent)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), ours]))
    steps = [step for step in plan(work.notebook, work.original, []) if "grader.check" not in step["source"]]
    job = {"steps": steps, "function": function, "options": dict(options)}
    process = subprocess.Popen(
        [sys.executable, "-m", "course_utils.terminal.with_answers"],
        cwd=work.folder,
        env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"},
        stdin=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        process.communicate(json.dumps(job))
    except KeyboardInterrupt:  # the terminal told the process too: let it put down what it has
        process.wait()
        raise
    return process.returncode


def namespace_of(steps: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """What the cells define, one after the other; a failing one is told, and does not stop the next."""
    from course_utils.terminal.cell_runner import error_in_words, quiet_shell

    shell = quiet_shell()
    for step in steps:
        with contextlib.redirect_stdout(io.StringIO()):
            result = shell.run_cell(step["source"])
        if error := result.error_before_exec or result.error_in_exec:
            print(f"Cell {step['cell']} of the notebook fails: {error_in_words(error, shell)}", file=sys.stderr)
    return dict(shell.user_ns)


def _main() -> int:
    job = json.loads(sys.stdin.read())
    module, _, name = job["function"].partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        print(f"The copy of the course beside the notebook lacks {error.name}: unpack its zip anew.", file=sys.stderr)
        return 2
    try:
        return int(function(namespace_of(job["steps"]), **job["options"]))
    except Refusal as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from the last look.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(_main())
