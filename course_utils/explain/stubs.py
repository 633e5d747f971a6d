"""Telling a stub that was left alone from an answer that fails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import unwrap
from types import CodeType, FunctionType

QUESTION = re.compile(r"q\d+_\d+")
# torch raises NotImplementedError too, for a dtype or device that an operation lacks
_TORCH = re.compile(r"not (currently )?(implemented|supported) for|could not run", re.IGNORECASE)


def is_stub(error: BaseException) -> bool:
    """Whether the error is the NotImplementedError of an unanswered question (and not one of torch's own)."""
    if not isinstance(error, NotImplementedError):
        return False
    message = str(error)
    return bool(QUESTION.match(message)) or not _TORCH.search(message)


def question_of(error: BaseException) -> str:
    """The question id that opens a stub's message ("q1_7: ..."), or an empty string."""
    found = QUESTION.match(str(error))
    return found.group() if found else ""


def stubbed(values: Iterable[object]) -> set[str]:
    """The questions whose definitions, among these values, are as they were handed out."""
    return {found for value in values for code in _codes(value) for found in _stub_in(code)}


def _codes(value: object) -> Iterator[CodeType]:
    """The code of a function, or of a class's own methods."""
    members = list(vars(value).values()) if isinstance(value, type) else [value]
    functions = (unwrap(member) for member in members if isinstance(member, FunctionType))  # below its decorators
    return (function.__code__ for function in functions if isinstance(function, FunctionType))


def _stub_in(code: CodeType) -> list[str]:
    """The question that opens the message of a NotImplementedError in the code."""
    texts = code.co_consts if "NotImplementedError" in code.co_names else ()
    return [found.group() for text in texts if isinstance(text, str) and (found := QUESTION.match(text))]
