"""Imports that would take seconds for nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SLOW = "rfc3987_syntax"  # builds a grammar for three seconds, for a URL format that no notebook schema uses


@contextmanager
def without_slow_imports() -> Iterator[None]:
    """Let jsonschema, which every notebook library loads, start without an optional part that is slow to import."""
    if SLOW in sys.modules:
        yield
        return
    sys.modules[SLOW] = None  # type: ignore[assignment]  # makes `import` raise ImportError, which jsonschema expects
    try:
        yield
    finally:
        del sys.modules[SLOW]
