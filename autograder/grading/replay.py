"""Run one case of one student again, and show what both sides were asked and answered: for a TA with a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from autograder.box.limits import Limits
from autograder.errors import BadInput
from autograder.grading.collect import collect
from autograder.grading.journal import JOURNAL, Journal, Outcome, homework_of
from autograder.grading.task import factory
from autograder.judge.candidate import Candidate
from autograder.judge.helped import sit_helped
from autograder.judge.proxies import Student
from autograder.judge.relay import Relay
from autograder.judge.seat import Help, Seat, Sitting
from autograder.judge.tools import tools
from autograder.submission import Submission, parse_submission

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Replayed:
    """What a case said then and now."""

    id: str
    sentence: str
    journal: str  # the verdict that is in the journal
    verdict: str
    message: str
    detail: str

    @property
    def same(self) -> bool:
        """Whether it came out as before."""
        return self.verdict == self.journal


def replay(result: str, out: Path, submissions: Path, tell: Tell = print) -> Replayed:
    """Replay `<student>/<question>/<case>` from the journal in `out`, every call and answer told."""
    student, _, case_id = result.partition("/")
    homework_name, outcome = _find(out, student)
    before = next((case for case in outcome.cases if case.case == case_id), None)
    if before is None:
        raise BadInput(f"The journal has no case {case_id} of {student}. Copy the id from the feedback page.")
    homework, exam, _ = tools(homework_name)
    entry = next((entry for entry in collect(submissions, homework_name) if entry.student == student), None)
    if entry is None or entry.content is None:
        raise BadInput(f"No readable submission of {student} in {submissions}.")
    case = next((case for case in exam.cases if case.id == case_id), None)
    if case is None:
        raise BadInput(f"The suite no longer has the case {case_id}.")
    submission = parse_submission(entry.content, entry.suffix, homework)
    boxes = factory(outcome.box or "auto")
    files = {} if before.helped else dict(entry.files_for(homework_name))
    if before.helped:
        tell(f"With the reference's {', '.join(before.helped)} in place of the student's.")

    def open_traced(limits: Limits, _: Help | None) -> Sitting:
        def open_sitting(asked: Submission, relay: Relay | None = None) -> Sitting:
            return Candidate(asked, boxes, files, relay).open(limits)

        if before.helped:
            sitting = sit_helped(submission, homework, Help(case.question, tuple(before.helped)), open_sitting)
        else:
            sitting = open_sitting(submission)
        _trace(sitting.student, tell)
        return sitting

    with Seat(open_traced, boxes.limits) as seat, exam.reference_seen_by(_Traced(tell)):
        seat.use(homework.question(case.question).limits)
        after = exam.sit(case, seat, before.seed)
    tell(
        f"\n{case.sentence}\n{after.verdict}: {after.message}"
        if after.message
        else f"\n{case.sentence}\n{after.verdict}"
    )
    if after.detail:
        tell(after.detail)
    told = Replayed(result, case.sentence, str(before.verdict), str(after.verdict), after.message, after.detail)
    if not told.same:
        tell(
            f"The journal says {before.verdict}: the submission or the suite has changed since, or answers are random."
        )
    return told


def _find(out: Path, student: str) -> tuple[str, Outcome]:
    homework = homework_of(out)
    with Journal(out / JOURNAL, homework) as opened:
        if student not in opened.outcomes:
            raise BadInput(f"The journal {out / JOURNAL} has no student {student}.")
        return homework, opened.outcomes[student]


def _trace(student: Student, tell: Tell) -> None:
    """Tell every call of the student's objects, with its result."""
    ask = student._call

    def told(target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _told(tell, "student", name, lambda: ask(target, name, args, kwargs), args, kwargs)

    student._call = told  # type: ignore[method-assign]


class _Traced:
    """The reference's names, each call told."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def __call__(self, reference: Any) -> Any:
        """The same reference, seen through this trace."""
        self._reference = reference
        return self

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._reference, name)
        if not callable(value) or isinstance(value, type):
            return value
        return lambda *args, **kwargs: _told(
            self._tell, "reference", name, lambda: value(*args, **kwargs), args, kwargs
        )


def _told(tell: Tell, side: str, name: str, call: Callable[[], Any], args: Any, kwargs: Any) -> Any:
    shown = [_shown(value) for value in args] + [f"{key}={_shown(value)}" for key, value in kwargs.items()]
    tell(f"{side}: {name}({', '.join(shown)})")
    try:
        result = call()
    except BaseException as error:
        tell(f"  raised {error}")
        raise
    tell(f"  gave {_shown(result)}")
    return result


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        text = repr(value.detach())
        return text if value.numel() <= 64 else f"tensor of shape {list(value.shape)}, mean {value.double().mean():.6g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return repr(value)[:200]
