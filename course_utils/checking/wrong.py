"""What a check raises."""

from __future__ import annotations


class Wrong(AssertionError):
    """An answer that is not right; `mistake` is the label of a known mistake that a check has recognised."""

    def __init__(self, message: str, mistake: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.mistake = mistake


class NotAnswered(Exception):
    """A question that is still a stub; `question` is what stands before the colon in "q1_7: ..."."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        head, colon, _ = message.partition(":")
        self.question = head.strip() if colon else ""
