"""Name the mistake: hold a wrong answer's outputs on the question's probes against those of the known mistakes."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from autograder.failing import failing
from autograder.homework import Homework
from autograder.judge.exam import Exam
from autograder.judge.local import reference_names, sit_locally
from autograder.judge.proxies import Student
from autograder.judge.results import Diagnosis
from autograder.judge.seat import Seat
from autograder.judge.verdicts import StudentFault, Verdict
from autograder.places import COURSE_UTILS, THE_COURSE, package_path
from autograder.submission import given_cells, reference_submission
from course_utils.checking.wrong import NotAnswered
from course_utils.explain.fingerprints import matches, run_probe
from course_utils.explain.naming import diagnose
from course_utils.explain.sealed_prints import (
    FILE,
    Catalogue,
    Mistake,
    SealedPrint,
    Unreadable,
    place_of,
    read_catalogue,
    seal,
)

_IMPORTED = re.compile(r"from course_utils\.([\w.]+) import")
Prints = dict[str, Any]  # probe name -> fingerprint of its output
SETTLED = 1e-6  # relative difference of two prints that are the same on different machines


def probes(public_file: Path) -> dict[str, Callable[..., Any]]:
    """The probes of a question's public file, by name; none where a draft has no such file yet."""
    if not public_file.is_file():
        return {}
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
    public = homework.public_file(question)
    code += [public.read_text()] if public.is_file() else []
    entries = homework.mistakes[question]  # of which hints and prices make no print
    code += [text for entry in entries for text in (entry.label, entry.source)]
    digest = hashlib.sha256("\0".join([*code, *_course_code(code)]).encode())
    return digest.hexdigest()[:16]


def _course_code(code: Iterable[str]) -> list[str]:
    """The text of the course's own packages, and of every module of course_utils that they or the code import."""
    own = [package_path(package) for package in THE_COURSE.packages]
    files = [file for path in own for file in ([path] if path.is_file() else path.rglob("*.py"))]
    found = {file: file.read_text() for file in files}
    waiting = [*code, *found.values()]
    while waiting:
        text = waiting.pop()
        for path in {COURSE_UTILS / f"{name.replace('.', '/')}.py" for name in _IMPORTED.findall(text)} - found.keys():
            if path.is_file():
                found[path] = path.read_text()
                waiting.append(found[path])
    return [found[path] for path in sorted(found)]


def stored(built: Path, question: str) -> Catalogue | None:
    """The known mistakes of a question as they were built with a homework; None where there are none to be read."""
    try:
        return read_catalogue(built / "tests" / FILE, question)
    except Unreadable:
        return None


class Diagnostician:
    """Knows the fingerprints of a homework's mistakes: built ones, else it computes them when first asked.

    `anew` computes them in any case; of the built ones those are kept with which they agree.
    """

    def __init__(self, homework: Homework, built: Path | None = None, anew: bool = False) -> None:
        self.homework = homework
        self._built = built
        self._anew = anew
        self.mistakes = cache(self._mistakes)
        self.probes = cache(lambda question: probes(homework.public_file(question)))
        self._exam = cache(lambda question: Exam(homework, lambda: reference_names(homework), question))

    def diagnose(
        self, question: str, student: Student, named: Collection[str] = (), failed: Collection[str] = ()
    ) -> Diagnosis | None:
        """The known mistakes that explain the student's answer best; else one that a failed case has named.

        `failed`: the cases that the answer fails. A mistake that fails none of them itself explains nothing.
        """
        known = self.known(question)
        found = diagnose(answers_to(self.probes(question), student), known, named, failed)
        if not found:
            first = next((mistake for mistake in known if mistake.label in named), None)
            return Diagnosis(first.label, first.hint) if first else None
        told = [
            Diagnosis(one.mistake.label, one.mistake.hint, one.exact, tuple(sorted(set(one.mistake.fails) & {*failed})))
            for one in found
        ]
        return replace(told[0], second=told[1] if len(told) > 1 else None)

    def known(self, question: str) -> list[Mistake]:
        """The mistakes with the cases that each fails, hidden ones too, where `verify` has found that out."""
        fails = failing(self.homework, question)
        return [replace(one, fails=sorted(fails.get(one.label, ()))) for one in self.mistakes(question)]

    def _mistakes(self, question: str) -> list[Mistake]:
        entries = self.homework.mistakes[question]
        old = stored(self._built, question) if self._built else None
        known = {mistake.label: mistake for mistake in old.mistakes} if old else {}
        nothing = Mistake("", "")
        if old and not self._anew and old.made_from == recipe(self.homework, question):
            return [replace(known.get(entry.label, nothing), label=entry.label, hint=entry.text) for entry in entries]
        right = self._prints(question, "")
        mistakes = []
        for entry in entries:
            wrong, again = (self._prints(question, entry.source, seed) for seed in (0, 1))
            differing = {  # and the same in every run: weights drawn at random tell nothing
                name: value
                for name, value in wrong.items()
                if not matches(value, right[name]) and name in again and matches(value, again[name])
            }
            prints = _settled(question, differing, known.get(entry.label, nothing).prints)
            mistakes.append(Mistake(entry.label, entry.text, prints, self._public_failures(question, entry.source)))
        return mistakes

    def _public_failures(self, question: str, paste: str) -> tuple[str, ...]:
        """The public checks that a mistake fails, by the names of their functions: what its hint can explain."""
        exam, submission = self._exam(question), reference_submission(self.homework, {question: paste})
        with Seat(lambda *_: sit_locally(submission)) as seat:
            cases = [case for case in exam.of_question(question) if case.public]
            limits = self.homework.question(question).limits
            failed = []
            for case in cases:
                seat.use(limits | case.limits)
                if exam.sit(case, seat).verdict is not Verdict.PASSED:
                    failed.append(case.id.removeprefix(f"{question}/").partition("[")[0])
        return tuple(dict.fromkeys(failed))

    def _prints(self, question: str, paste: str, seed: int = 0) -> Prints:
        sitting = sit_locally(reference_submission(self.homework, {question: paste}))
        sitting.student.seed(seed)
        try:
            return answers_to(self.probes(question), sitting.student)
        finally:
            sitting.close()


def _settled(question: str, new: Prints, old: Mapping[str, SealedPrint]) -> dict[str, SealedPrint]:
    """The new prints sealed, but an old one where they agree: another processor's last digits make no file stale."""
    return {
        name: old[name] if name in old and old[name].fits(value, SETTLED) else seal(value, place_of(question, name))
        for name, value in new.items()
    }
