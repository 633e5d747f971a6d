"""The process in which `course check` runs a notebook: cells in order, each question's checks after its answer.

It reads the steps as JSON from its input and answers with a line of JSON before and after each of them. What the
notebook prints goes nowhere.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_utils.explain.check_report import CheckReport
from course_utils.explain.fast_imports import without_slow_imports
from course_utils.explain.outcomes import CheckOutcome
from course_utils.notebook.grader import report_of

Say = Callable[[Mapping[str, Any]], None]


def run_steps(steps: Sequence[Mapping[str, Any]], say: Say, tests: Path = Path("tests")) -> None:
    """Run the steps: `{"cell": 5, "source": ...}` or `{"check": "q1_1"}`; a failing one does not stop the next."""
    shell = quiet_shell()
    if any("import torch" in step.get("source", "") for step in steps):
        with contextlib.suppress(ImportError):
            importlib.import_module("torch")  # seconds, which are not to count as the first cell's
    open_questions = []
    for step in steps:
        say({"begin": step.get("cell") or step["check"]})
        if "cell" in step:
            result = shell.run_cell(step["source"])
            error = result.error_before_exec or result.error_in_exec
            say({"cell": step["cell"], "error": "" if error is None else error_in_words(error, shell)})
        elif not _check(step["check"], tests, shell.user_ns, say):
            open_questions.append(step["check"])
    for question in open_questions:  # perhaps answered in a cell below the check
        say({"begin": question})
        _check(question, tests, shell.user_ns, say)


def _check(question: str, tests: Path, names: dict[str, Any], say: Say) -> bool:
    """Run a question's public checks and say what they found; False where it is not answered yet."""
    from otter.test_files import ExceptionTestFile

    try:
        file = ExceptionTestFile.from_file(str(tests / f"{question}.py"))
        file.run(names)
        report = report_of(question, file)
    except (Exception, SystemExit) as error:  # the file is damaged, or an answer wanted to leave Python
        told = f"they stopped with {type(error).__name__}: {error}"
        outcome = CheckOutcome("error", "The checks run to their end.", told)
        report = CheckReport(question, [outcome])
    outcomes = [dataclasses.asdict(outcome) for outcome in report.outcomes]
    say({"question": question, "outcomes": outcomes, "topics": list(report.hidden_topics)})
    return report.status != "not answered"


def quiet_shell() -> Any:
    """What runs cells in a notebook, without the notebook's server and without a history."""
    with without_slow_imports():
        import otter.test_files  # noqa: F401  seconds, which are not to count as the first check's
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Shell(InteractiveShell):
        def enable_matplotlib(self, gui: str | None = None) -> tuple[str, str]:
            """Leave pictures where they are: nobody looks at them here."""
            return "agg", "agg"

    return Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))


def error_in_words(error: BaseException, shell: Any) -> str:
    """The error in a line, and the line of the cell that raised it."""
    text = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    if isinstance(error, SyntaxError):
        return f"{text} (line {error.lineno}{f': {error.text.strip()}' if error.text else ''})"
    lines, frame = [], error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals is shell.user_ns:
            lines.append(frame.tb_lineno)
        frame = frame.tb_next
    return f"{text} (line {lines[0]})" if lines else text


def _main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    steps = json.loads(sys.stdin.read())

    def say(line: Mapping[str, Any]) -> None:
        print(json.dumps(line), file=answers, flush=True)

    run_steps(steps, say)
    say({"end": True})
    answers.close()
    os._exit(0)  # whatever threads the notebook has left


if __name__ == "__main__":
    _main()
