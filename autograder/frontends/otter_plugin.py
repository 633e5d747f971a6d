"""The plugin that otter loads while it grades: the judge reads the submission, otter only an empty notebook."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from otter.plugins import AbstractOtterPlugin
from otter.test_files import GradingResults
from otter.test_files.abstract_test import TestCase, TestCaseResult, TestFile

from autograder.frontends.judged import Judging
from autograder.frontends.messages import hints, message
from autograder.frontends.otter import LATE
from autograder.grading.levels import level_by


class JudgePlugin(AbstractOtterPlugin):  # type: ignore[misc]
    """Hands otter nothing to run, and fills in the judge's scores and messages afterwards."""

    _judging: Judging
    _copy: tempfile.TemporaryDirectory[str]
    _feedback: dict[str, Any]

    def before_grading(self, config: Any) -> None:
        """Give the judge a copy, then clear the folder; the judge is at work while otter starts its kernel.

        otter would unpickle `.OTTER_LOG`, and its kernel import what lies there.
        """
        submission = Path(self.submission_path)
        self._copy = tempfile.TemporaryDirectory()
        copy = Path(self._copy.name, "submission")
        shutil.copytree(submission.parent, copy, symlinks=True, ignore=shutil.ignore_patterns("tests"))
        wanted = self.plugin_config
        sandbox, course = wanted.get("sandbox", "auto"), wanted.get("course")
        feedback = level_by(wanted.get("feedback"), wanted.get("due"))
        decided = wanted.get("decided", {})
        self._judging = Judging(wanted["homework"], copy / submission.name, sandbox, course, feedback, decided)
        for path in submission.parent.iterdir():
            if path.name == "tests" or path == submission:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def before_execution(self, submission: nbformat.NotebookNode) -> nbformat.NotebookNode:
        """An empty notebook."""
        return nbformat.v4.new_notebook()

    def after_grading(self, results: GradingResults) -> None:
        """The judge's results in the places that the zip has for them."""
        with self._copy:
            self._feedback = self._judging.feedback()
        for question in self._feedback["questions"]:
            if question["text"] is None:
                _fill(results.results[question["question"]], question)
        if LATE in results.results:
            _fill_late(results.results[LATE], self._feedback)
        results.set_output("\n".join(self._feedback["notes"]))

    def generate_report(self) -> str:
        """One line for the instructor's log."""
        return f"Judged: {self._feedback['total']:g} points, status {self._feedback['status']}."


def _fill(place: TestFile, question: dict[str, Any]) -> None:
    """Cases share the question's points evenly in otter's eyes; its score is the judge's own."""
    cases = question["cases"] or [UNREAD]
    share = question["points"] / len(cases)
    place.test_cases = [TestCase(_name(case), "", not case["public"], share, None, None) for case in cases]
    place.test_case_results = [
        TestCaseResult(test, _message(case), case["verdict"] == "passed")
        for test, case in zip(place.test_cases, cases, strict=True)
    ]
    failed = next((result.test_case for result in place.test_case_results if not result.passed), None)
    if failed is not None:
        failed.failure_message = "\n".join(hints(question)) or None
    place.update_score(question["judged"])


def _fill_late(place: TestFile, feedback: dict[str, Any]) -> None:
    """What lateness costs, as points below zero."""
    told = f"{feedback['penalty']:g} of {feedback['total']:g} points are taken off."
    place.test_cases = [TestCase("what lateness costs", "", False, 0, None, None)]
    place.test_case_results = [TestCaseResult(place.test_cases[0], told, not feedback["penalty"])]
    place.update_score(-feedback["penalty"])


UNREAD = {"sentence": "the notebook", "variation": "", "public": True, "verdict": "failed", "message": "unreadable"}


def _name(case: dict[str, Any]) -> str:
    return f"{case['sentence']} ({case['variation']})" if case["variation"] else str(case["sentence"])


def _message(case: dict[str, Any]) -> str:
    if case["verdict"] in ("passed", "failed", "error"):
        return message(case) or str(case["verdict"])
    return f"{case['verdict']}: {message(case)}"
