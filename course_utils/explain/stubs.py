"""Telling a stub that was left alone from an answer that fails."""

from __future__ import annotations

import re

_QUESTION = re.compile(r"q\d+_\d+")
# torch raises NotImplementedError too, for a dtype or device that an operation lacks
_TORCH = re.compile(r"not (currently )?(implemented|supported) for|could not run", re.IGNORECASE)


def is_stub(error: BaseException) -> bool:
    """Whether the error is the NotImplementedError of an unanswered question (and not one of torch's own)."""
    if not isinstance(error, NotImplementedError):
        return False
    message = str(error)
    return bool(_QUESTION.match(message)) or not _TORCH.search(message)


def question_of(error: BaseException) -> str:
    """The question id that opens a stub's message ("q1_7: ..."), or an empty string."""
    found = _QUESTION.match(str(error))
    return found.group() if found else ""
