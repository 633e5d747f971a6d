"""The judge's end of a zygote: starts it, asks it for boxes, hears how they ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any

from autograder.box.backends import launch, plan_for
from autograder.judge.verdicts import Infrastructure

_START = 180.0  # seconds for importing torch on a busy machine
_ANSWER = 60.0


class ZygoteLost(Exception):
    """The zygote is gone, or does not answer."""


@dataclass(frozen=True)
class Ending:
    """How a box ended: `code` as in `subprocess`, `reason` is what it had too much of, or died, closed or setup."""

    reason: str
    code: int


class Keeper:
    """A running zygote."""

    def __init__(self, backend: str, *, warm: bool = True) -> None:
        """Start it and come back at once; without `warm` it imports nothing, for a quick trial."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors = tempfile.TemporaryFile()
        self._ready = False
        self._endings: dict[int, Ending | None] = {}
        self._opened: dict[int, str | None] = {}
        try:
            self._plan = plan_for(backend)
            self._process: subprocess.Popen[bytes] = launch(self._plan, theirs.fileno(), self._errors.fileno())
            self._control.send(json.dumps({"plan": asdict(self._plan), "warm": warm}).encode())
        except OSError as error:
            raise ZygoteLost(f"it cannot be started: {error}") from None
        finally:
            theirs.close()

    def open(self, serial: int, limits: dict[str, float], channel: socket.socket) -> None:
        """A new box at the other end of `channel`; `ZygoteLost`, or `Infrastructure` if its walls cannot be built."""
        self._wait(lambda: self._ready, _START)
        self._endings[serial] = None
        message = json.dumps({"op": "open", "box": serial, "limits": limits}).encode()
        try:
            socket.send_fds(self._control, [message], [channel.fileno()])
        except OSError as error:
            raise ZygoteLost(str(error)) from None
        self._wait(lambda: serial in self._opened, _ANSWER)
        trouble = self._opened.pop(serial)
        if trouble is not None:
            self.close_box(serial)
            raise Infrastructure(f"A box cannot be set up: {trouble or 'no reason given'}.")

    def close_box(self, serial: int) -> Ending:
        """Kill a box, unless it is dead already, and wait until nothing is left of it."""
        if self._endings[serial] is None:
            try:
                self._control.send(json.dumps({"op": "kill", "box": serial}).encode())
            except OSError as error:
                raise ZygoteLost(str(error)) from None
        return self.ending(serial)

    def ending(self, serial: int, seconds: float = _ANSWER) -> Ending:
        """How a box ended, once it has."""
        self._wait(lambda: self._endings[serial] is not None, seconds)
        ending = self._endings.pop(serial)
        assert ending is not None
        return ending

    def close(self) -> None:
        """Hang up; the zygote ends its boxes and itself."""
        self._control.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._errors.close()
        if self._plan.scratch:  # gone already, unless the zygote was killed
            shutil.rmtree(self._plan.scratch, ignore_errors=True)

    def _wait(self, done: Any, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            try:
                self._control.settimeout(max(deadline - time.monotonic(), 0.001))
                data = self._control.recv(65536)
            except TimeoutError:
                raise ZygoteLost(f"it did not answer within {seconds:g} seconds") from None
            except OSError as error:
                raise ZygoteLost(str(error)) from None
            if not data:
                raise ZygoteLost(self._last_words())
            self._take(json.loads(data))

    def _take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self._ready = True
        elif "opened" in message:
            self._opened[message["box"]] = None if message["opened"] else message["detail"]
        else:
            self._endings[message["box"]] = Ending(message["ended"], message["code"])

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it died without a word"
