"""Take what student code prints."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any


class Capture:
    """Takes what is printed, keeps the first bytes of it, and drops standard error."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.size = 0
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Take a piece."""
        if self.size < self._limit:
            self._parts.append(bytes(data[: self._limit - self.size]))
        self.size += len(data)

    def text(self) -> str:
        """What was kept, and how much was not."""
        text = b"".join(self._parts).decode("utf-8", "replace")
        return text + f"\n... {self.size - self._limit} more bytes" if self.size > self._limit else text

    def __enter__(self) -> None:
        self._saved = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _stream(self.write), _stream(lambda data: None)

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._saved


class _Raw(io.RawIOBase):
    """The bottom of a text stream: hands every piece of bytes to a function."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        self._sink(data)
        return len(data)


def _stream(sink: Callable[[bytes], None]) -> io.TextIOWrapper:
    return io.TextIOWrapper(_Raw(sink), encoding="utf-8", errors="replace", write_through=True)  # type: ignore[arg-type]
