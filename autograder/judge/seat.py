"""Where a student sits: a box that is opened when first asked, and opened anew after one was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autograder.judge.proxies import Student


@dataclass(frozen=True)
class Sitting:
    """A student that can be asked, and how to send them home."""

    student: Student
    close: Callable[[], None]


class Seat:
    """Gives the student at hand; `renew` throws the box away."""

    def __init__(self, open_sitting: Callable[[], Sitting], wall: float | None = None) -> None:
        """`wall` is how many seconds a call may take by default."""
        self._open = open_sitting
        self.wall = wall
        self._sitting: Sitting | None = None

    def student(self) -> Student:
        """The student at hand."""
        if self._sitting is None:
            self._sitting = self._open()
        return self._sitting.student

    def renew(self) -> None:
        """Whoever asks next gets a fresh box."""
        if self._sitting is not None:
            self._sitting.close()
            self._sitting = None

    def __enter__(self) -> Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self.renew()
