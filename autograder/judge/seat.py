"""Where a student sits: a box that is opened when first asked, and opened anew after one was lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from autograder.box.channel import TimeLimit, waited_for_a_core
from autograder.box.limits import Limits
from autograder.judge.proxies import Student

DEFAULT = Limits()


@dataclass(frozen=True)
class Sitting:
    """A student that can be asked, and how to send them home."""

    student: Student
    close: Callable[[], None]
    waited: Callable[[], float] = lambda: 0.0  # seconds that its box has waited for a core


class Help(NamedTuple):
    """The reference's answers to `parts` stand in for the student's own while `question` is graded."""

    question: str
    parts: tuple[str, ...]


class Seat:
    """Gives the student at hand; `renew` throws the box away, `use` changes what the next one may use.

    Whoever opens a sitting is told as `wall_submission` what is left of it.
    """

    def __init__(
        self,
        open_sitting: Callable[[Limits, Help | None], Sitting],
        limits: Limits = DEFAULT,
        processor: float = math.inf,
    ) -> None:
        """`processor` is how many seconds of processor time this process itself may work on the submission."""
        self._open = open_sitting
        self._processor_end = time.process_time() + processor
        self._usual = self.limits = limits
        self._help: Help | None = None
        self._time = TimeLimit(limits.wall_submission, self._lost)
        self._lost_before, self._told = waited_for_a_core(), 0.0  # by this process; by all, and told to the limit
        self._lost_in_boxes = 0.0  # that are closed
        self._sitting: Sitting | None = None
        self.seen_hidden = False  # whether this box has met the inputs of a hidden case

    @property
    def out_of_time(self) -> bool:
        """Whether the submission has used up the time for all of its boxes, or the judge's own."""
        return self._left() <= 0 or time.process_time() > self._processor_end

    def _left(self) -> float:
        """Seconds of the submission's time; what the judge or a box has waited for a core does not count."""
        try:
            return self._time.left() or 0.0
        except TimeoutError:
            return 0.0

    def _lost(self) -> float:
        """Seconds that were waited since this was last asked."""
        now = self._sitting.waited() if self._sitting is not None else 0.0
        told, waited = self._told, waited_for_a_core() - self._lost_before + self._lost_in_boxes + now
        self._told = max(told, waited)
        return self._told - told

    def student(self) -> Student:
        """The student at hand."""
        if self._sitting is None:
            left = replace(self.limits, wall_submission=self._left())
            self._sitting = self._open(left, self._help)
        return self._sitting.student

    def use(self, changes: Mapping[str, Any], help: Help | None = None) -> None:
        """From here on boxes have the usual limits with these changes, and this help."""
        limits = replace(self._usual, **changes)
        boxes_own, now = replace(limits, wall=0), replace(self.limits, wall=0)  # `wall` is the judge's to keep
        if boxes_own != now or help != self._help:
            self.renew()
        self.limits, self._help = limits, help

    def renew(self) -> None:
        """Whoever asks next gets a fresh box."""
        if self._sitting is not None:
            self._lost_in_boxes += self._sitting.waited()
            self._sitting.close()
            self._sitting = None
        self.seen_hidden = False

    def __enter__(self) -> Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self.renew()
