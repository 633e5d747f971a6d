"""What a check found, as plain data between the one who checks and the one who shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from course_utils.explain.stubs import QUESTION

Status = Literal["passed", "failed", "error", "out of time", "not answered"]


@dataclass(frozen=True)
class CheckOutcome:
    """One check: its status, the sentence that says what was checked, what came out, the named mistake.

    `remark` is about the course's own files, where something is wrong with them. `needs` is what was missing, where the
    check met an earlier question without an answer (its id), or something that is not defined (its name).
    """

    status: Status
    sentence: str
    message: str = ""
    mistake: str | None = None
    hint: str | None = None
    remark: str = ""
    needs: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check holds."""
        return self.status == "passed"

    @property
    def waits_for(self) -> str:
        """The earlier question whose answer is missing, or an empty string."""
        return self.needs if self.status == "not answered" and QUESTION.fullmatch(self.needs) else ""


def waiting(sentence: str, question: str) -> CheckOutcome:
    """A check that cannot be made before an earlier question has its answer."""
    return CheckOutcome("not answered", sentence, f"needs {question}, which is not answered yet", needs=question)
