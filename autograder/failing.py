"""Which cases each known mistake fails, as `autograder verify` found out and keeps in `proved.json`.

One mistake costs once (`QuestionResult.judged`) where every case that an answer fails is one that the mistake itself
fails. What is kept counts while tests, mistakes, and the reference's answers mean the same; prices, hints and weights
have no part in it. A case that a mistake fails with one seed and passes with another is not kept.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from autograder.digests import digest_of, understood, unweighed
from autograder.homework import Homework

PROVED = "proved.json"  # beside a homework's suites


def failing(homework: Homework, question: str) -> dict[str, frozenset[str]]:
    """The cases that each mistake of a question fails, by its label; nothing where that is not known."""
    entry = _entries(homework.suite / PROVED).get(question, {})
    if not isinstance(entry, dict) or entry.get("facts") != failing_digest(homework, question):
        return {}
    told = entry.get("fails", {})
    return {label: frozenset(f"{question}/{case}" for case in cases) for label, cases in told.items()}


@cache
def failing_digest(homework: Homework, question: str) -> str:
    """A hash of what decides which cases a mistake fails."""
    asked = homework.question(question)
    files = (homework.public_file(question), homework.hidden_file(question))
    tests = [unweighed(file.read_text(encoding="utf-8")).meaning for file in files if file.is_file()]
    answers = [understood(homework.question(part).answer).meaning for part in (*asked.uses, question)]
    wrong = [(entry.label, understood(entry.source).meaning) for entry in homework.mistakes[question]]
    return digest_of(tests, answers, wrong)[:32]


def unproved(homework: Homework) -> list[str]:
    """The questions of which it is not known what their mistakes fail."""
    return [question.id for question in homework.questions if is_unproved(homework, question.id)]


def is_unproved(homework: Homework, question: str) -> bool:
    """Whether it is not known what this question's mistakes fail; one without mistakes has nothing to be known."""
    return bool(homework.mistakes[question]) and not failing(homework, question)


def _entries(path: Path) -> dict[str, Any]:
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError:
        return {}


@cache
def _read(path: Path, _: int) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["questions"])
    except (ValueError, TypeError, KeyError):
        return {}  # `verify` tells that it is of no use, and writes another
