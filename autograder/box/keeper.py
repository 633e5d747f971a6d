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
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from autograder.box.backends import BACKENDS, free_users, launch, plan_for
from autograder.box.limits import Limits
from autograder.judge.verdicts import Infrastructure

_START = 180.0  # seconds for importing torch on a busy machine
_ANSWER = 60.0
STRONG = ("bwrap", "namespaces")  # in order of preference; "process" must be asked for by name


class ZygoteLost(Exception):
    """The zygote is gone, or does not answer."""


@dataclass(frozen=True)
class Ending:
    """How a box ended: `code` as in `subprocess`, `reason` is what it had too much of, or died, closed or setup."""

    reason: str
    code: int


class Keeper:
    """A running zygote."""

    def __init__(self, backend: str, *, warm: bool = True, root: Keeper | None = None) -> None:
        """Start it and come back at once; without `warm` it imports nothing, for a quick trial.

        With a `root` it is a fork of that zygote; its end of the control socket is all that is needed for it, so the
        caller may be a fork of the root's owner.
        """
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ready = False
        self._endings: dict[int, Ending | None] = {}
        self._opened: dict[int, str | None] = {}
        self._waited: dict[int, float] = {}
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if root is None:
                self._errors = tempfile.TemporaryFile()
                self._plan = plan_for(backend)
                self._process = launch(self._plan, theirs.fileno(), self._errors.fileno())
                self._control.send(json.dumps({"plan": asdict(self._plan), "warm": warm}).encode())
            else:
                self._errors = root._errors
                self._plan = replace(root._plan, first_user=free_users())
                message = json.dumps({"op": "branch", "first_user": self._plan.first_user}).encode()
                socket.send_fds(root._control, [message], [theirs.fileno()])
        except OSError as error:
            raise ZygoteLost(f"it cannot be started: {error}") from None
        finally:
            theirs.close()

    def open(
        self, serial: int, limits: dict[str, float], judge: socket.socket, other: socket.socket, vault: bool = False
    ) -> None:
        """A new box, or a vault, at the end of a channel to the judge and of one between the two.

        Raises `ZygoteLost`, or `Infrastructure` if its walls cannot be built.
        """
        self._wait(lambda: self._ready, _START)
        self._endings[serial] = None
        message = json.dumps({"op": "open", "box": serial, "limits": limits, "vault": vault}).encode()
        try:
            socket.send_fds(self._control, [message], [judge.fileno(), other.fileno()])
        except OSError as error:
            raise ZygoteLost(str(error)) from None
        self._wait(lambda: serial in self._opened, _ANSWER)
        trouble = self._opened.pop(serial)
        if trouble is not None:
            self.close_box(serial)
            raise Infrastructure(f"A box cannot be set up: {trouble or 'no reason given'}.")

    def close_box(self, serial: int) -> Ending:
        """Kill a box, unless it is dead already, and wait until nothing is left of it."""
        self._kill(serial)
        return self.ending(serial)

    def let_go(self, serial: int) -> None:
        """Kill a box and do not wait: it is dead before the next one opens, and buried while that one is at work."""
        if self._plan.backend == "process":  # orphans of the next box could be taken for this one's
            self.close_box(serial)
        else:
            self._kill(serial)
            del self._endings[serial]

    def ending(self, serial: int, seconds: float = _ANSWER) -> Ending:
        """How a box ended, once it has."""
        self._wait(lambda: self._endings[serial] is not None, seconds)
        ending = self._endings.pop(serial)
        assert ending is not None
        return ending

    def waited(self, serial: int) -> float:
        """How many seconds of its life a box has waited for a core to run on."""
        try:
            self._control.send(json.dumps({"op": "waited", "box": serial}).encode())
        except OSError as error:
            raise ZygoteLost(str(error)) from None
        self._wait(lambda: serial in self._waited, _ANSWER)
        return self._waited.pop(serial)

    def _kill(self, serial: int) -> None:
        if self._endings[serial] is None:
            try:
                self._control.send(json.dumps({"op": "kill", "box": serial}).encode())
            except OSError as error:
                raise ZygoteLost(str(error)) from None

    def close(self) -> None:
        """Hang up; the zygote ends its boxes and itself."""
        with suppress(OSError):  # it is gone already, or does not listen
            self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(10)
            while self._control.recv(65536):
                continue
        self._control.close()
        if self._process is None:
            return
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
        elif "waited" in message:
            self._waited[message["box"]] = message["waited"]
        elif message["box"] in self._endings:
            self._endings[message["box"]] = Ending(message["ended"], message["code"])

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it died without a word"


@cache
def trouble(backend: str) -> str | None:
    """Why a backend does not work on this machine, or None: found out by opening a box with it."""
    ours, theirs = socket.socketpair()
    keeper = None
    try:
        keeper = Keeper(backend, warm=False)
        keeper.open(0, Limits().as_dict(), theirs, ours)
        keeper.close_box(0)
        return None
    except (ZygoteLost, Infrastructure) as error:
        return str(error)
    finally:
        ours.close()
        theirs.close()
        if keeper is not None:
            keeper.close()


def available() -> list[str]:
    """The backends that work here, strongest first."""
    return [name for name in BACKENDS if trouble(name) is None]


def pick(backend: str = "auto") -> str:
    """The backend to use; `Infrastructure` with a remedy if it does not work."""
    if backend == "auto":
        for name in STRONG:
            if trouble(name) is None:
                return name
        reasons = "; ".join(f"{name}: {trouble(name)}" for name in STRONG)
        raise Infrastructure(
            f"No sandbox works here ({reasons}). Install bubblewrap or allow user namespaces; "
            "`--sandbox process` runs student code with resource limits only."
        )
    if backend not in BACKENDS:
        raise Infrastructure(f"There is no sandbox called {backend}: choose auto, {', '.join(BACKENDS)}.")
    if (reason := trouble(backend)) is not None:
        raise Infrastructure(f"The sandbox {backend} does not work here: {reason}.")
    return backend


STARTED: dict[str, Keeper] = {}  # by backend: the zygote of which those of this process and its forks are forks


def start_ahead(backend: str) -> str:
    """Pick a backend and have its zygote warm up while this process does other things; once for all workers.

    Without namespaces a fork of a zygote would outlive it, so there every worker starts its own.
    """
    name = pick(backend)
    if name in STRONG and name not in STARTED:
        try:
            STARTED[name] = Keeper(name)
        except ZygoteLost as error:
            raise Infrastructure(f"The process that keeps the boxes {error}.") from None
    return name


def stop() -> None:
    """End what was started ahead."""
    while STARTED:
        STARTED.popitem()[1].close()
