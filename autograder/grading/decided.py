"""What people decided about a class besides the judge: grades and comments, waived cases, dates and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading.by_hand import Desk, Sheet
from autograder.grading.late import Deadline
from autograder.grading.rules import Rules, read_rules
from autograder.grading.waivers import in_force, read_waivers
from autograder.homework import Homework
from autograder.judge.results import Waiver


@dataclass(frozen=True)
class Decided:
    """All of it, as it stands."""

    sheet: Sheet = field(default_factory=Sheet)
    waived: Mapping[str, Waiver] = field(default_factory=dict)  # by case, test or question
    deadline: Deadline = field(default_factory=Deadline)
    rules: Rules = field(default_factory=Rules)
    outdated: Mapping[str, list[str]] = field(
        default_factory=dict
    )  # by student, questions with facts of an older suite

    files: Mapping[Path, bytes] = field(default_factory=dict)  # that a decision of now is kept in

    @property
    def level(self) -> str:
        """How much pages tell of hidden cases."""
        return self.rules.level(self.deadline)


def decided(out: Path, homework: Homework, desk: Desk, said: Rules | None = None) -> Decided:
    """What is decided in a folder of results, with what is said now."""
    rules = (said or Rules()).over(read_rules(out))
    deadline = rules.deadline(out, desk.deadline(homework))
    return Decided(desk.read(homework), in_force(read_waivers(out)), deadline, rules)
