"""Boxes for student code: which walls to use, and boxes to ask.

with BoxFactory("auto") as boxes:
    box = boxes.open()
    student = Student(box.channel)
"""

from __future__ import annotations

import itertools
import os
import signal
import socket

from autograder.box.channel import WORKED, Channel, SocketChannel
from autograder.box.keeper import STARTED, STRONG, Keeper, ZygoteLost, available, pick, trouble
from autograder.box.limits import MB, Limits
from autograder.judge.verdicts import Infrastructure, StudentCrash, StudentMemory, StudentTimeout

__all__ = ["STRONG", "Box", "BoxFactory", "available", "pick", "trouble"]
_count = itertools.count(1)


class Box:
    """A running box, or the vault of one; `channel` is the way to its server."""

    def __init__(self, keeper: Keeper, limits: Limits, box: socket.socket | None = None) -> None:
        """With a way to another box, this one is its vault."""
        self._keeper = keeper
        self._serial = os.getpid() * 2**20 + next(_count)  # no other worker of the same zygote has it
        self._limits = limits
        self._open = True
        self._vault: Box | None = None
        ours, theirs = socket.socketpair()
        self._way_to_vault: socket.socket | None = None
        if box is None:
            self._way_to_vault, box_end = socket.socketpair()
        other = box if box is not None else box_end
        self._waited = 0.0
        self.channel = SocketChannel(ours, self._autopsy, self._open_vault, self._lost, limits.wall_box)
        try:
            keeper.open(self._serial, limits.as_dict(), theirs, other, vault=box is not None)
        except BaseException:
            ours.close()
            if self._way_to_vault is not None:
                self._way_to_vault.close()
            raise
        finally:
            theirs.close()
            other.close()

    def _open_vault(self) -> Channel:
        """The way to this box's vault, which is opened when first asked for."""
        if self._vault is None:
            assert self._way_to_vault is not None
            try:
                self._vault = Box(self._keeper, self._limits, self._way_to_vault)
            except ZygoteLost as error:
                raise Infrastructure(f"The process that keeps the boxes is gone: {error}.") from None
            self._way_to_vault = None
        return self._vault.channel

    def _lost(self) -> float:
        """Seconds that this box or its vault has waited for a core since this was last asked."""
        before = self._waited
        try:
            self._waited = self._keeper.waited(self._serial)
        except ZygoteLost:  # as the next request will find
            return 0.0
        return self._waited - before + (self._vault._lost() if self._vault is not None else 0.0)

    def waited(self) -> float:
        """Seconds that this box and its vault have waited for a core."""
        try:
            return self._keeper.waited(self._serial) + (self._vault.waited() if self._vault is not None else 0.0)
        except ZygoteLost:
            return 0.0

    def close(self) -> None:
        """End it, with all its processes and files."""
        if self._vault is not None:
            self._vault.close()
        if self._way_to_vault is not None:
            self._way_to_vault.close()
        self.channel.close()
        if self._open:
            self._open = False
            try:
                self._keeper.let_go(self._serial)
            except ZygoteLost:  # then its boxes are gone too, and the next one starts another
                pass

    def _autopsy(self, fault: Exception) -> Exception:
        """What a fault of the channel really was, after ending the box."""
        self._open = False
        died = isinstance(fault, StudentCrash) and fault.__cause__ is None
        try:
            ending = self._keeper.ending(self._serial, seconds=1.0) if died else self._keeper.close_box(self._serial)
        except ZygoteLost as error:
            try:
                ending = self._keeper.close_box(self._serial)
            except ZygoteLost:
                return Infrastructure(f"The process that keeps the boxes is gone: {error}.") if died else fault
        if not died:
            return fault
        if ending.reason == "memory":
            return StudentMemory(f"Your code used more than {self._limits.memory // MB} MB of memory.")
        if ending.reason == "cpu":
            return StudentTimeout(f"Your code used more than {self._limits.cpu} seconds of processor time.")
        if ending.reason == "wall":
            return StudentTimeout(WORKED.format(self._limits.wall_box))
        if ending.reason == "processes":
            return StudentCrash(f"Your code started more than {self._limits.processes} processes.")
        if ending.reason == "disk":
            return StudentCrash(f"Your code wrote more than {self._limits.tmpfs // MB} MB of files.")
        if ending.code < 0:
            known = -ending.code in signal.Signals.__members__.values()
            name = signal.Signals(-ending.code).name if known else f"signal {-ending.code}"
            return StudentCrash(f"The process that ran your code died ({name}).")
        return StudentCrash(f"Your code ended its own process (exit status {ending.code}).")


class BoxFactory:
    """Opens boxes, one after the other or side by side; belongs to one thread."""

    def __init__(self, backend: str = "auto", limits: Limits | None = None) -> None:
        self.backend = pick(backend)
        self.limits = limits or Limits()
        self._keeper: Keeper | None = None

    def __enter__(self) -> BoxFactory:
        try:
            self._keeper = self._keeper or Keeper(self.backend, root=STARTED.get(self.backend))  # none for "process"
        except ZygoteLost as error:
            raise Infrastructure(f"The process that keeps the boxes {error}.") from None
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all boxes."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def open(self, limits: Limits | None = None) -> Box:
        """A fresh box, with limits of its own where given; a zygote that was lost is started again, once."""
        try:
            return self._open(limits or self.limits)
        except ZygoteLost:
            self.close()
            STARTED.pop(self.backend, None)
        try:
            return self._open(limits or self.limits)
        except ZygoteLost as error:
            raise Infrastructure(f"The process that keeps the boxes is gone: {error}.") from None

    def _open(self, limits: Limits) -> Box:
        self.__enter__()
        assert self._keeper is not None
        return Box(self._keeper, limits)
