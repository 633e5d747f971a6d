"""A second sitting: the student's answer with the course's own earlier ones, which are in another box."""

from __future__ import annotations

from collections.abc import Callable

from autograder.homework import Homework
from autograder.judge.relay import Relay
from autograder.judge.seat import Help, Sitting
from autograder.judge.verdicts import Infrastructure, StudentFault
from autograder.submission import Submission, part_names, parts_submission, with_stand_ins
from course_utils.checking.compare import NotAnswered

Open = Callable[[Submission, Relay | None], Sitting]  # a sitting of a submission, with a way to another box


def sit_helped(submission: Submission, homework: Homework, help: Help, open_sitting: Open) -> Sitting:
    """The submission with stand-ins for the reference's answers, and these in a box where no student code runs."""
    try:
        far = open_sitting(parts_submission(homework, help.question), None)
    except (NotAnswered, StudentFault) as fault:
        raise Infrastructure(f"The reference's parts cannot be run: {fault}") from None
    try:
        relay = Relay(far.student.channel, part_names(homework, help.parts))
        near = open_sitting(with_stand_ins(submission, homework, *help), relay)
    except BaseException:
        far.close()
        raise

    def close() -> None:
        near.close()
        far.close()

    return Sitting(near.student, close, near.waited)
