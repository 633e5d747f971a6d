"""What a check raises."""

from __future__ import annotations


class Wrong(AssertionError):
    """An answer that is not right; `mistake` is the label of a known mistake that a check has recognised.

    `relation` is how the answer follows from the right one, a sentence without values at the message's end; `plain` is
    the message without it.
    """

    def __init__(self, message: str, mistake: str | None = None, relation: str = "") -> None:
        self.plain = message
        self.message = f"{message}. {relation}" if relation else message
        super().__init__(self.message)
        self.mistake = mistake
        self.relation = relation


class NotAnswered(Exception):
    """A question that is still a stub; `question` is what stands before the colon in "q1_7: ..."."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        head, colon, _ = message.partition(":")
        self.question = head.strip() if colon else ""
