"""Cells that need answers: they wait politely until the questions before them are answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from course_utils.explain.stubs import is_stub, question_of


@contextmanager
def after(*questions: str, what: str = "picture") -> Iterator[None]:
    """Run the block; where it meets an unanswered question, print what it waits for instead of failing."""
    try:
        yield
    except NotImplementedError as error:
        if not is_stub(error):
            raise
        found = question_of(error)
        print(_waiting([found] if found else list(questions), what))
    except NameError:
        print(_waiting(list(questions), what))


def _waiting(questions: list[str], what: str) -> str:
    listed = " and ".join(filter(None, [", ".join(questions[:-1]), *questions[-1:]])) or "the question above"
    return f"This {what} appears once {listed} {'are' if len(questions) > 1 else 'is'} answered."
