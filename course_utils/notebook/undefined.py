"""Why a name is not defined although its cell was run: what was run last in this kernel tells."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence

from course_utils.terminal.notebook_file import Cell


def why_undefined(names: Collection[str], defined: Collection[str], sources: Sequence[str]) -> str:
    """Why the newest cell for one of these names did not define it; an empty string where it did, or is a stub."""
    for source in reversed(sources):
        name = next((name for name in names if _is_about(source, name)), "")
        if not name:
            continue
        cell = Cell(0, "code", source)
        if isinstance(cell.parsed, str):
            return f"your cell with `{name}` is no Python, so nothing of it counts: {cell.parsed}"
        if name in defined or name in cell.stubs:
            return ""
        return f"your cell with `{name}` stopped before that was defined: the error stands below it"
    return ""


def sources_run() -> list[str]:
    """The code of this kernel's cells in the order in which they were run, faulty ones too; none outside of one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return list(shell.history_manager.input_hist_raw) if shell else []


def _is_about(source: str, name: str) -> bool:
    """Whether the code is there to define the name, be it Python or not."""
    definition, assignment = rf"(?:(?:async\s+)?def|class)\s+{name}\b", rf"{name}\s*(?::[^=\n]+)?=(?!=)"
    return bool(re.search(f"^(?:{definition}|{assignment})", source, re.MULTILINE))
