"""A progress bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm

EVERY = 5.0  # seconds between plain lines


class Progress:
    """Counts what is done: submissions that are graded, cells that have run."""

    def __init__(self, total: int, unit: str = "submission", done: str = "graded", title: str = "") -> None:
        self._total, self._done, self._words = total, 0, done
        self._title = f"{title}: " if title else ""
        self._start = self._told = time.monotonic()
        on_terminal = sys.stderr.isatty() and total > 0
        self._bar = tqdm(total=total, unit=unit, desc=title or None, leave=False) if on_terminal else None

    def step(self, label: str) -> None:
        """One more is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(label, refresh=False)
            self._bar.update()
        elif time.monotonic() - self._told > EVERY or self._done == self._total:
            self._told = time.monotonic()
            rate = self._done / max(self._told - self._start, 1e-9)
            left = (self._total - self._done) / rate
            pace = f"{rate:.1f} per second" if rate >= 1 else f"{1 / rate:.1f} s each"
            told = f"{self._done}/{self._total} {self._words}, {pace}, {left:.0f} s left"
            print(f"{self._title}{told}", file=sys.stderr)

    def note(self, text: str) -> None:
        """A line that does not break the bar."""
        tqdm.write(text, file=sys.stderr)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
