"""A progress bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm

EVERY = 5.0  # seconds between plain lines


class Progress:
    """Counts submissions as they are done."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._start = self._told = time.monotonic()
        self._bar = tqdm(total=total, unit="submission", leave=False) if sys.stderr.isatty() and total else None

    def step(self, student: str) -> None:
        """One more is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(student, refresh=False)
            self._bar.update()
        elif time.monotonic() - self._told > EVERY or self._done == self._total:
            self._told = time.monotonic()
            rate = self._done / max(self._told - self._start, 1e-9)
            left = (self._total - self._done) / rate
            print(f"{self._done}/{self._total} graded, {rate:.1f} per second, {left:.0f} s left", file=sys.stderr)

    def note(self, text: str) -> None:
        """A line that does not break the bar."""
        tqdm.write(text, file=sys.stderr)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
