"""What a check found, as plain data between the one who checks and the one who shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "error", "not answered"]


@dataclass(frozen=True)
class CheckOutcome:
    """One check: its status, the sentence that says what was checked, what came out, the named mistake.

    `remark` is about the course's own files, where something is wrong with them.
    """

    status: Status
    sentence: str
    message: str = ""
    mistake: str | None = None
    hint: str | None = None
    remark: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check holds."""
        return self.status == "passed"
