"""Progress bars that a student can watch, and that keep quiet where nobody watches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")

GRADING = "COURSE_GRADING"  # set to 1 where a submission is graded
_HUSHED = ContextVar("hushed", default=False)


class Bar(Generic[T]):
    """Iterates over something and draws how far it is; `show` writes numbers beside the bar."""

    def __init__(self, iterable: Iterable[T], total: int | None = None, label: str = "") -> None:
        self._iterable = iterable
        if total is None and isinstance(iterable, Sized):
            total = len(iterable)
        self._run = _RUNS[-1] if _RUNS else None
        self._bar = self._run.bar if self._run else _bar(total=total, desc=label or None) if watched() else None

    def __iter__(self) -> Iterator[T]:
        counter = self._run or self._bar
        if counter is None:
            yield from self._iterable
            return
        own: Any = nullcontext() if self._run else self._bar
        with own:  # closed also when the loop is left early
            for item in self._iterable:
                yield item
                counter.update()

    def show(self, **numbers: Any) -> None:
        """Write these numbers beside the bar, as in `show(loss=0.31, rate=1e-3)`."""
        if self._bar is not None:
            text = ", ".join(f"{name} {float(value):.3g}" for name, value in numbers.items())
            self._bar.set_postfix_str(text, refresh=False)


class WholeRun:
    """One bar for a run in several pieces, with the total and the time left; it counts also where nobody watches."""

    def __init__(self, total: int, done: int, label: str) -> None:
        self.done = done
        self.bar = _bar(total=total, initial=done, desc=label or None) if watched() else None

    def update(self) -> None:
        """One step more."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()

    def say(self, text: str) -> None:
        """Print above the bar."""
        if self.bar is None:
            print(text)
        else:
            self.bar.write(text, file=sys.stdout)


_RUNS: list[WholeRun] = []  # the run that bars belong to, while there is one


@contextmanager
def whole_run(total: int, done: int = 0, label: str = "") -> Iterator[WholeRun]:
    """A bar for a whole run, of which `done` steps are made: what `progress` counts inside moves this one forward."""
    run = WholeRun(total, done, label)
    _RUNS.append(run)
    try:
        with run.bar or nullcontext():
            yield run
    finally:
        _RUNS.pop()


def progress(iterable: Iterable[T], total: int | None = None, label: str = "") -> Bar[T]:
    """A progress bar round an iterable: `for batch in (bar := progress(batches)): ...; bar.show(loss=loss)`."""
    return Bar(iterable, total, label)


def progress_of_bytes(done: int, total: int | None, label: str) -> AbstractContextManager[Any]:
    """A bar for a download, with `update(number of bytes)`."""
    if not watched():
        return nullcontext(_Silent())
    return _bar(initial=done, total=total, desc=label, unit="B", unit_scale=True, unit_divisor=1024)


@contextmanager
def without_bars() -> Iterator[None]:
    """Draw no bars: a check trains a dozen small models, and what counts is the report below."""
    token = _HUSHED.set(True)
    try:
        yield
    finally:
        _HUSHED.reset(token)


def watched() -> bool:
    """Is there a terminal or a notebook to draw in, and neither a grading nor a check going on?"""
    if _HUSHED.get() or os.environ.get(GRADING, "0") not in ("", "0"):
        return False
    return _in_notebook() or bool(getattr(sys.stdout, "isatty", bool)())


class _Silent:
    def update(self, n: int) -> None:
        """Draw nothing."""


def _bar(**options: Any) -> Any:
    """A bar on stdout: notebooks paint stderr red. Made only where it is watched, since tqdm starts a thread."""
    from tqdm import tqdm

    return tqdm(file=sys.stdout, mininterval=0.2, dynamic_ncols=True, **options)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
