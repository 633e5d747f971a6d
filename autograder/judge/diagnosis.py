"""Name the mistake: hold a wrong answer's outputs on the question's probes against those of the known mistakes."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from autograder.homework import Homework
from autograder.judge.local import sit_locally
from autograder.judge.proxies import Student
from autograder.judge.results import Diagnosis
from autograder.judge.verdicts import StudentFault
from autograder.places import COURSE_UTILS
from autograder.submission import given_cells, reference_submission
from course_utils.checking import NotAnswered
from course_utils.fingerprints import Mistake, diagnose, matches, run_probe

_IMPORTED = re.compile(r"from course_utils\.([\w.]+) import")
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


def recipe(homework: Homework, question: str) -> str:
    """A hash of what the fingerprints of a question's mistakes are made from."""
    asked = homework.question(question)
    code = [*given_cells(homework), *(homework.question(part).answer for part in (*asked.uses, question))]
    code += [homework.public_file(question).read_text(), (homework.suite / "mistakes" / f"{question}.py").read_text()]
    digest = hashlib.sha256("\0".join([*code, *_course_code(code)]).encode())
    return digest.hexdigest()[:16]


def _course_code(code: Iterable[str]) -> list[str]:
    """The text of every module of course_utils that the code imports, and of those which they import."""
    found: dict[Path, str] = {}
    waiting = list(code)
    while waiting:
        text = waiting.pop()
        for path in {COURSE_UTILS / f"{name.replace('.', '/')}.py" for name in _IMPORTED.findall(text)} - found.keys():
            if path.is_file():
                found[path] = path.read_text()
                waiting.append(found[path])
    return [found[path] for path in sorted(found)]


def stored_prints(built: Path, made_from: str | None = None) -> dict[str, Prints] | None:
    """The fingerprints by label in a built test file; None where there is none, or it was made from something else."""
    if not built.is_file():
        return None
    found: dict[str, Any] = {}
    for node in ast.parse(built.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("MADE_FROM", "MISTAKES"):
                found[name] = ast.literal_eval(node.value)
    if "MISTAKES" not in found or made_from not in (None, found.get("MADE_FROM")):
        return None
    return {mistake["label"]: mistake["prints"] for mistake in found["MISTAKES"]}


class Diagnostician:
    """Knows the fingerprints of a homework's mistakes: built ones, else it computes them when first asked."""

    def __init__(self, homework: Homework, built: Path | None = None) -> None:
        self.homework = homework
        self._built = built
        self.mistakes = cache(self._mistakes)
        self.probes = cache(lambda question: probes(homework.public_file(question)))

    def diagnose(self, question: str, student: Student, named: Collection[str] = ()) -> Diagnosis | None:
        """The known mistake that fits the student's answer best; else one that a failed case has named."""
        found = diagnose(answers_to(self.probes(question), student), self.mistakes(question), named)
        if found is None:
            found = next((known for known in self.mistakes(question) if known.label in named), None)
        return Diagnosis(found.label, found.hint) if found else None

    def _mistakes(self, question: str) -> list[Mistake]:
        entries = self.homework.mistakes[question]
        if self._built is not None:
            stored = stored_prints(self._built / "tests" / f"{question}.py", recipe(self.homework, question))
            if stored is not None:
                return [Mistake(entry.label, entry.text, stored.get(entry.label, {})) for entry in entries]
        right = self._prints(question, "")
        mistakes = []
        for entry in entries:
            wrong, again = (self._prints(question, entry.source, seed) for seed in (0, 1))
            differing = {  # and the same in every run: weights drawn at random tell nothing
                name: value
                for name, value in wrong.items()
                if not matches(value, right[name]) and name in again and matches(value, again[name])
            }
            mistakes.append(Mistake(entry.label, entry.text, differing))
        return mistakes

    def _prints(self, question: str, paste: str, seed: int = 0) -> Prints:
        sitting = sit_locally(reference_submission(self.homework, {question: paste}))
        sitting.student.seed(seed)
        try:
            return answers_to(self.probes(question), sitting.student)
        finally:
            sitting.close()
