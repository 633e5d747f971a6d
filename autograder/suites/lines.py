"""Hold the lines of a derivation against its definition."""

from __future__ import annotations

from typing import Any

from course_utils.checking.compare import Wrong
from course_utils.notebook.derivations import compare_lines, kind_of


def assert_lines(lines: Any, definition: Any, what: str, at_least: int = 3, rtol: float | None = None) -> None:
    """Raise `Wrong` unless there are enough lines, the first agrees with the definition, and all agree."""
    if not isinstance(lines, (list, tuple)):
        raise Wrong(f"{what}: expected a list of lines, got {kind_of(lines)}")
    if len(lines) < at_least:
        count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        raise Wrong(f"{what}: {count}, expected at least {at_least}")
    names = ["the definition", *(f"line {i}" for i in range(len(lines)))]
    report = compare_lines([definition, *lines], names, rtol=rtol)
    if not report:
        raise Wrong(f"{what}: {report.message}")
