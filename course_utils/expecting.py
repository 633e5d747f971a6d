"""Expect a ValueError of an answer, in the notebook and behind the judge's stand-ins alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.checking import Wrong


def expect_value_error(what: str, f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """`Wrong` unless the call raises a ValueError; any other exception passes through."""
    try:
        f(*args, **kwargs)
    except ValueError:
        return
    except Exception as error:
        if "ValueError" in getattr(error, "type_names", ()):  # how the judge tells what was raised in the box
            return
        raise
    raise Wrong(f"{what} must raise a ValueError, and raises nothing")
