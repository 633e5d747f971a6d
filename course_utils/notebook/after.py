"""Cells that need answers: they wait politely until the questions before them are answered."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from course_utils.explain.stubs import is_stub, question_of, stubbed


def after(*questions: str, what: str = "picture") -> AbstractContextManager[None]:
    """Run the block; where it meets an unanswered question, print what it waits for instead of failing.

    Where it fails otherwise, and one of the questions does not pass its public checks, that is said above the error.
    """
    return _after(questions, what, sys._getframe(1).f_globals)


@contextmanager
def _after(questions: Sequence[str], what: str, notebook: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        missing = _missing(error, questions, notebook)
        if missing is None:
            if wrong := _wrong(questions, notebook):
                print(_needs(wrong, what), flush=True)
            raise
        print(_waiting(missing, what))


def _missing(error: Exception, questions: Sequence[str], notebook: Mapping[str, Any]) -> list[str] | None:
    """The questions without an answer that stopped the block; None where something else did."""
    if is_stub(error):
        found = question_of(error)
        return _open(questions, found, notebook) if found else list(questions)
    if not isinstance(error, NameError) or isinstance(error, UnboundLocalError):
        return None
    names = getattr(notebook.get("grader"), "names", {})
    if not names:
        return list(questions)
    needed = next((question for question, defined in names.items() if error.name in defined), "")
    missing = _open(questions, needed, notebook)
    # a cell may lack what an earlier one computes; what an answer lacks, and no question defines, is a slip of the pen
    return missing or (list(questions) if _raised_in_the_cell(error) else None)


def _open(questions: Sequence[str], needed: str, notebook: Mapping[str, Any]) -> list[str]:
    """Those of the questions that are stubs or not run yet, and the one that was needed, in this order."""
    names = getattr(notebook.get("grader"), "names", {})
    stubs = stubbed(notebook.values()) | {needed}
    found = [one for one in questions if one in stubs or any(name not in notebook for name in names.get(one, ()))]
    return found if needed in ("", *found) else [*found, needed]


def _raised_in_the_cell(error: Exception) -> bool:
    """Whether the error comes from the cell's own lines, and not from a function that they call."""
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_name == "<module>"


def _wrong(questions: Sequence[str], notebook: Mapping[str, Any]) -> list[str]:
    """Those of the questions that do not pass their public checks, where the notebook has its grader."""
    grader = notebook.get("grader")
    if grader is None:
        return []
    reports = {question: grader.check(question, notebook) for question in questions}
    return [question for question, report in reports.items() if report is not None and not report.passed]


def _waiting(questions: Sequence[str], what: str) -> str:
    listed = _listed(questions) or "the question above"
    return f"This {what} appears once {listed} {'are' if len(questions) > 1 else 'is'} answered."


def _needs(questions: Sequence[str], what: str) -> str:
    checks = " and ".join(f'grader.check("{question}")' for question in questions)
    verb, which, tell = ("do", "their checks", "tell") if len(questions) > 1 else ("does", "its checks", "tells")
    return (
        f"This {what} needs {_listed(questions)}, which {verb} not pass {which} yet: {checks} {tell} more. "
        "The error below may come from there."
    )


def _listed(questions: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(questions[:-1]), *questions[-1:]]))
