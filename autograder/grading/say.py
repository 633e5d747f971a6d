"""What a person says about a student's page: `autograder comment`, and `autograder waive` about a bad case."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.errors import BadInput
from autograder.grading.by_hand import BY_HAND, PAGE, Desk, read_sheet
from autograder.grading.decided import Decided
from autograder.grading.journal import JOURNAL, homework_of, known
from autograder.grading.recompute import Recomputed, recompute
from autograder.grading.waivers import WAIVERS, Waived, added, check, in_force, read_waivers, undone, waivers_text
from autograder.homework import read_homework
from autograder.judge.results import FULL
from autograder.write import write

Tell = Callable[[str], None]


def comment(
    out: Path, student: str, text: str, question: str | None = None, score: float | None = None, tell: Tell = print
) -> Recomputed:
    """Write a comment into the sheet, with or without a score, and the pages anew; an empty one takes it back."""
    homework = read_homework(homework_of(out))
    check_student(student, known(out / JOURNAL, homework.name))
    points = {asked.id: asked.points for asked in homework.graded}
    if question is not None and question not in points:
        raise BadInput(f"{homework.name} has no question {question}. It has {', '.join(points)}.")
    if score is not None and (question is None or not 0 <= score <= points[question]):
        most = f"0 to {points[question]:g}" if question else "one with --question"
        raise BadInput(f"{score:g} is no score here. Give {most}.")
    sheet = read_sheet(out, homework).with_comment(student, question or PAGE, text, score)
    write({out / BY_HAND: sheet.text({}).encode()}, [])
    return recompute(out, tell=tell)


def waive(out: Path, case: str, how: str, why: str, dry_run: bool, tell: Tell, desk: Desk | None = None) -> Recomputed:
    """Give full marks on a case to all, or leave it out where it failed; recorded, and told before it is written."""
    homework = homework_of(out)
    waived = read_waivers(out)
    cases = [case for outcome in known(out / JOURNAL, homework).values() for case in outcome.cases]
    check(case, how, in_force(waived), cases)
    tell(f"{case}: {'counts in full for all' if how == FULL else 'is left out where it failed'}. {why}")
    return _decide(out, added(waived, Waived(case, how, why, _now())), dry_run, tell, desk)


def unwaive(out: Path, case: str, dry_run: bool, tell: Tell, desk: Desk | None = None) -> Recomputed:
    """Take a waiver back; that it was there stays recorded."""
    waived = read_waivers(out)
    if case not in in_force(waived):
        raise BadInput(f"{case} is not waived. Waived are: {', '.join(in_force(waived)) or 'none'}.")
    tell(f"{case} counts again as it came out.")
    return _decide(out, undone(waived, case, _now()), dry_run, tell, desk)


def _decide(out: Path, waived: tuple[Waived, ...], dry_run: bool, tell: Tell, desk: Desk | None) -> Recomputed:
    def change(people: Decided) -> Decided:
        return replace(people, waived=in_force(waived), files={out / WAIVERS: waivers_text(waived)})

    return recompute(out, dry_run, tell, desk, change=change)


def check_student(student: str, students: Collection[str]) -> None:
    """Raises `BadInput` where nobody is called so, with those who are nearly."""
    if student not in students:
        near = difflib.get_close_matches(student, students, 3, 0.5)
        raise BadInput(f"No student {student} in these results. " + (f"Is it {' or '.join(near)}?" if near else ""))


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
