"""Name the mistake: hold a wrong answer's outputs on the question's probes against those of the known mistakes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from autograder.homework import Homework
from autograder.judge.local import sit_locally
from autograder.judge.proxies import Student
from autograder.judge.results import Diagnosis
from autograder.judge.verdicts import StudentFault
from autograder.submission import reference_submission
from course_utils.checking import NotAnswered
from course_utils.fingerprints import Mistake, diagnose, matches, run_probe

Prints = dict[str, Any]  # probe name -> fingerprint of its output


def probes(public_file: Path) -> dict[str, Callable[..., Any]]:
    """The probes of a question's public file, by name."""
    spec = importlib.util.spec_from_file_location(f"probes_{public_file.stem}", public_file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{public_file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if name.startswith("probe_")}


def answers_to(question_probes: dict[str, Callable[..., Any]], student: Student) -> Prints:
    """The fingerprints of a student's outputs; probes that meet a stub or a dead box are left out."""
    prints: Prints = {}
    for name, probe in question_probes.items():
        try:
            prints[name] = run_probe(probe, student.__getitem__)
        except (NotAnswered, StudentFault):
            continue
    return prints


class Diagnostician:
    """Knows the fingerprints of a homework's mistakes; computes those of a question when first asked."""

    def __init__(self, homework: Homework) -> None:
        self.homework = homework
        self.mistakes = cache(self._mistakes)
        self.probes = cache(lambda question: probes(homework.public_file(question)))

    def diagnose(self, question: str, student: Student, named: Iterable[str] = ()) -> Diagnosis | None:
        """The known mistake that fits the student's answer best; else one that a failed case has named."""
        found = diagnose(answers_to(self.probes(question), student), self.mistakes(question))
        if found is None:
            found = next((known for known in self.mistakes(question) if known.label in set(named)), None)
        return Diagnosis(found.label, found.hint) if found else None

    def _mistakes(self, question: str) -> list[Mistake]:
        right = self._prints(question, "")
        mistakes = []
        for entry in self.homework.mistakes[question]:
            wrong = self._prints(question, entry.source)
            differing = {name: value for name, value in wrong.items() if not matches(value, right[name])}
            mistakes.append(Mistake(entry.label, entry.text, differing))
        return mistakes

    def _prints(self, question: str, paste: str) -> Prints:
        sitting = sit_locally(reference_submission(self.homework, {question: paste}))
        try:
            return answers_to(self.probes(question), sitting.student)
        finally:
            sitting.close()
