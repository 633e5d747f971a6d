"""`grader.check("q1_1")`: the public checks in the notebook, run by otter and shown by us."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.explain.check_report import CheckReport, Overview
from course_utils.explain.explainer import Explainer
from course_utils.explain.fast_imports import without_slow_imports
from course_utils.explain.outcomes import CheckOutcome
from course_utils.notebook.bars import without_bars

if TYPE_CHECKING:
    from course_utils.terminal.originals import Asked, Original

__all__ = ["Explainer", "Grader", "report_of"]

GRADING = "COURSE_GRADING"  # set where the notebook is graded: public checks have nothing to do there


class Grader:
    """A thin layer over `otter.Notebook`: otter finds and runs the checks, this shows what they found.

    Everything else that `otter.Notebook` can do (`export`, ...) is there under the same name. Nothing is logged.
    """

    def __init__(self, name: str, tests_dir: str = "./tests") -> None:
        self.name = name
        self.tests_dir = Path(tests_dir)
        self._otter = None if os.environ.get(GRADING) else _open(name, tests_dir)

    def check(self, question: str, global_env: dict[str, Any] | None = None) -> CheckReport | None:
        """Run a question's public checks against the notebook as it stands."""
        if self._otter is None:
            return None
        if not (self.tests_dir / f"{question}.py").is_file():
            raise FileNotFoundError(f"there is no check {question!r} in {self.tests_dir.resolve()}: {self._known()}")
        env = sys._getframe(1).f_globals if global_env is None else global_env
        with without_bars():
            return self._report(question, env)

    def check_all(self, global_env: dict[str, Any] | None = None) -> Overview | None:
        """Run the public checks of every question: one line each."""
        if self._otter is None:
            return None
        env = sys._getframe(1).f_globals if global_env is None else global_env
        with without_bars():
            return Overview(self.name, [self._report(question, env) for question in self._questions()])

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What each question is to define, in the order of the page; empty where no copy of the homework is at hand."""
        return {question: asked.names for question, asked in self._asked.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return (lambda *_, **__: None) if self._otter is None else getattr(self._otter, name)

    def _report(self, question: str, env: Mapping[str, Any]) -> CheckReport:
        """What a question's checks find, under its section; a cell that could not be run is told as such."""
        assert self._otter is not None
        report = report_of(question, self._otter.check(question, global_env=env))
        asked = self._asked.get(question)
        if asked is None or self._original is None:
            return report
        report = report.placed(asked.section, self._original.owners)
        if report.status != "not answered" or report.waits_for:
            return report
        from course_utils.notebook.undefined import sources_run, why_undefined

        fault = why_undefined(asked.names, env.keys(), sources_run())
        outcomes = [o if o.passed else replace(o, status="error", message=fault) for o in report.outcomes]
        return replace(report, outcomes=outcomes) if fault else report

    @cached_property
    def _original(self) -> Original | None:
        """The homework as it was handed out, where a copy is at hand: it tells what belongs to which section."""
        from course_utils.terminal.originals import original_of
        from course_utils.terminal.refusals import Refusal

        try:
            return original_of(self.name, self.tests_dir.parent)
        except (Refusal, OSError):
            return None

    @cached_property
    def _asked(self) -> dict[str, Asked]:
        """What is asked, by id, in the order of the page."""
        return {asked.id: asked for asked in self._original.questions} if self._original else {}

    def _questions(self) -> list[str]:
        """The questions that have checks, in the order of the page; those that it does not have at the end."""
        stems = (path.stem for path in self.tests_dir.glob("*.py") if path.stem != "__init__")
        order = list(self._asked)
        return sorted(stems, key=lambda stem: [_place(order, stem), *(int(n) for n in re.findall(r"\d+", stem))])

    def _known(self) -> str:
        if self.tests_dir.is_dir():
            return f"there are {', '.join(self._questions()) or 'none'}"
        return "open the notebook in the folder that it came in, beside its `tests`"


def _place(order: Sequence[str], question: str) -> int:
    return order.index(question) if question in order else len(order)


def _open(name: str, tests_dir: str) -> Any:
    with without_slow_imports():
        from otter import Notebook  # seconds to import, and not needed where a notebook is graded

    class Quiet(Notebook):  # type: ignore[misc]
        """Otter appends every check with all that its file holds to `.OTTER_LOG`: megabytes that nobody here reads."""

        def _log_event(self, *_: Any, **__: Any) -> None:
            """Write nothing."""

    notebook = f"{name}.ipynb"
    return Quiet(notebook if os.path.isfile(notebook) else None, tests_dir=tests_dir)


def report_of(question: str, results: Any) -> CheckReport:
    """What otter ran, with the outcomes that `Explainer` recorded; a check without one keeps otter's text."""
    outcomes: list[CheckOutcome] = []
    topics: list[str] = []
    for result in results.test_case_results:
        test = result.test_case.body.test_func
        outcome = getattr(test, "outcome", None)
        if outcome is None:
            outcome = CheckOutcome(
                "passed" if result.passed else "failed",
                result.test_case.name,
                "" if result.passed else str(result.message),
            )
        outcomes.append(outcome)
        topics = getattr(getattr(test, "explainer", None), "hidden_topics", topics)
    return CheckReport(question, outcomes, topics)
