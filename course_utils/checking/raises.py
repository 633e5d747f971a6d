"""Expect a ValueError of an answer, in the notebook and behind the judge's stand-ins alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.checking.compare import NotAnswered, Wrong
from course_utils.explain.stubs import is_stub


def expect_value_error(what: str, f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """`Wrong` unless the call raises a ValueError; in a notebook any other exception passes through."""
    try:
        f(*args, **kwargs)
    except ValueError:
        return
    except Exception as error:
        names = getattr(error, "type_names", ())  # how the judge tells what was raised in the box
        if not names:
            raise
        if "ValueError" in names:
            return
        raise Wrong(f"{what} must raise a ValueError, and raises {error}") from None
    raise Wrong(f"{what} must raise a ValueError, and raises nothing")


def raises_value_error(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> bool:
    """Whether the call raises a ValueError, and not another exception or none; for probes."""
    try:
        expect_value_error("the call", f, *args, **kwargs)
    except NotAnswered:
        raise
    except Exception as error:
        if is_stub(error):
            raise
        return False
    return True
