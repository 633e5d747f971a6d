"""From what a box reports to the exception that a test sees; nothing in a report is trusted."""

from __future__ import annotations

import re
from typing import Any

from autograder.box.channel import NO_ANSWER
from autograder.judge.verdicts import StudentCrash, StudentError, StudentMemory
from course_utils.checking.compare import NotAnswered
from course_utils.explain.error_words import in_words

MAX_MESSAGE = 400
_REFUSED = {  # what the system says where the box refuses something: what the box does not allow
    "[Errno 1] Operation not permitted": "no network, no new sessions, no shared memory",
    "can't start new thread": "only a few processes and threads",
    "[Errno 11] Resource temporarily unavailable": "only a few processes and threads",
    "[Errno 27] File too large": "only small files",
}
_PATH = re.compile(r"(?<![\w.])(?:/[\w.+@-]+)+/(?=[\w.+@-])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class StudentRaised(StudentError):
    """An exception of the student's code: `type_names` are the names of its class and of that class's bases.

    `words` say what it means, in a sentence of ours.
    """

    def __init__(self, message: str, type_names: tuple[str, ...] = (), words: str = "") -> None:
        super().__init__(message)
        self.type_names = type_names
        self.words = words

    @property
    def type_name(self) -> str:
        """The name of the exception's class."""
        return self.type_names[0] if self.type_names else "Exception"


def as_exception(error: Any) -> Exception:
    """The exception that a test sees for an error which the box reports; nothing in the report is trusted."""
    fields = ("kind", "types", "message", "cell", "line", "source", "shapes")
    kind, types, message, cell, line, source, shapes = (checked(error, dict).get(field) for field in fields)
    names = tuple(one_line(name)[:80] for name in types if type(name) is str) if type(types) is list else ()
    text = one_line(message) if type(message) is str else ""
    if kind in ("missing", "stub"):
        return NotAnswered(text if kind == "stub" else f"`{text}` is not defined in your notebook.")
    if kind == "memory":
        return StudentMemory("Your code asked for more memory than it may use.")
    if kind == "no data":
        return StudentRaised(f"Your code gave back something that is not data: {text}.")
    where = ""
    if type(cell) is str and type(line) is int:
        where = f" (in your cell {one_line(cell)[:80]}, line {line}"
        where += f": `{one_line(source, own=True)}`)" if type(source) is str and source else ")"
    where += next((f". The box allows {rule}." for words, rule in _REFUSED.items() if words in text), "")
    head = names[0] if names else "Exception"
    told = f"{head}: {text}{where}" if text else f"{head}{where}"
    if words := in_words(text, source if type(source) is str else ""):
        told = f"{told.removesuffix('.')}. {words}"
        told += f". On that line {one_line(shapes)}" if type(shapes) is str and shapes else ""
    return StudentRaised(told, names, words)


def printable(text: str) -> str:
    """A text without what a terminal or a page might obey; its lines stay."""
    return "\n".join(_CONTROL.sub(" ", line) for line in text.split("\n"))


def one_line(text: str, own: bool = False) -> str:
    """One printable line, without the folders of any path in it unless it is the student's `own` code."""
    text = _CONTROL.sub(" ", text[: 8 * MAX_MESSAGE]).strip()
    text = text if own else _PATH.sub("", text)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."


def checked(value: Any, kind: type) -> Any:
    """A part of a reply, if it is of the right type."""
    if type(value) is not kind:
        raise StudentCrash(NO_ANSWER)
    return value
