"""The judge's side of the channel: one request, one reply, or a verdict on why there is none."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch

from autograder.box import protocol
from autograder.box.protocol import HEADER, TO_BOX, TO_JUDGE, ProtocolError
from autograder.box.server import Server
from autograder.judge.verdicts import Infrastructure, StudentCrash, StudentTimeout

NO_ANSWER = "Your code sent something that is not an answer."
WORKED = "Your notebook was at work for more than {:g} seconds."
PATIENCE = 10  # times its limit that a request may take where the box waits for others on the machine


Relay = Callable[[dict[str, Any], float | None], dict[str, Any]]  # a message and the seconds left, the next message


class Channel(Protocol):
    """Whatever answers requests."""

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message, within `wall` seconds."""

    relay: Relay | None  # carries messages to another box while a request is being answered

    def talk(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """One turn of a conversation with a part over there: a message, and the next one that comes back."""

    def vault(self) -> Channel:
        """The way to the vault, which holds the numbers of watched calls."""

    def close(self) -> None:
        """Hang up."""


class LoopbackChannel:
    """A server in this process, reached through real bytes: for trusted code only, so without a time limit."""

    def __init__(self) -> None:
        self._vault = LoopbackVault()
        self._server = Server(ask_vault=self._vault.answer_box, ask_judge=self._ask_judge)
        self._sequence = 0
        self.relay: Relay | None = None

    def vault(self) -> Channel:
        """A vault in this process."""
        return self._vault

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message; `wall` is not enforced."""
        self._sequence += 1
        nonce = os.urandom(8)
        reply = self._server.handle(protocol.pack(message, nonce, self._sequence, TO_BOX))
        return _open(bytearray(reply), nonce, self._sequence)

    def talk(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The answer; calls in between have come through `relay`."""
        return _copied(self._server.answer_peer(_copied(message, TO_BOX)), TO_JUDGE)

    def _ask_judge(self, message: dict[str, Any], _: protocol.Header) -> dict[str, Any]:
        if self.relay is None:
            raise Infrastructure("there is no other box here")
        with _outside_modes():
            return _copied(self.relay(_copied(message, TO_JUDGE), None), TO_BOX)

    def close(self) -> None:
        """Forget the notebook."""
        self._server.close()


class LoopbackVault:
    """A vault in this process."""

    relay: Relay | None = None

    def __init__(self) -> None:
        self._kept: Any = None

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message."""
        return _copied({"value": self._open().answer_judge(_copied(message, TO_BOX))}, TO_JUDGE)

    def talk(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """Nothing: there are no parts in a vault."""
        raise Infrastructure("a vault has no parts")

    def answer_box(self, data: bytes) -> bytes:
        """The reply to a request of the server's."""
        with _outside_modes():
            return bytes(self._open().answer_box(data))

    def vault(self) -> Channel:
        """None: this is one."""
        raise Infrastructure("a vault has no vault")

    def close(self) -> None:
        """Forget it."""
        self._kept = None

    def _open(self) -> Any:
        if self._kept is None:
            from autograder.box.vault import Vault  # not every sitting watches

            self._kept = Vault()
        return self._kept


class TimeLimit:
    """When a request must be answered; what the box has waited for a core to run on does not count.

    So it is a limit of processor time and sleep, and a busy machine costs nobody anything.
    """

    def __init__(self, wall: float | None, lost: Callable[[], float], late: StudentTimeout | None = None) -> None:
        """`lost` tells how many seconds the box has waited since it was last asked; `late` is what is then told."""
        self._lost = lost
        self._wall = wall or 0.0
        self.late = late or _too_late(wall)
        self._start = now = time.monotonic()
        self._forgiven = 0.0
        self._end = None if wall is None else now + wall
        self._last = now + PATIENCE * self._wall

    def left(self) -> float | None:
        """Seconds from now, None where there is no limit; `TimeoutError` where there are none."""
        if self._end is None:
            return None
        while (left := self._end - time.monotonic()) <= 0:
            lost = self._lost() if self._end < self._last else 0.0
            self._forgiven += lost
            if lost < self._wall / 100:
                raise TimeoutError
            self._end = min(self._end + lost, self._last)
        return left

    def used(self) -> float:
        """Seconds from the beginning, but for those that are known to have been lost."""
        return time.monotonic() - self._start - self._forgiven


def waited_for_a_core() -> float:
    """Seconds that this process was ready to run and had no core; none where the kernel does not tell."""
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class SocketChannel:
    """A server at the other end of a socket; after the first fault every request fails."""

    def __init__(
        self,
        connection: socket.socket,
        autopsy: Callable[[Exception], Exception] = lambda fault: fault,
        open_vault: Callable[[], Channel] | None = None,
        lost: Callable[[], float] = lambda: 0.0,
        life: float = math.inf,
    ) -> None:
        """`autopsy` is told of the first fault and says what the fault really is; `lost` is the deadline's to ask.

        `life` is how many seconds all requests together may take.
        """
        self._socket = connection
        self._autopsy = autopsy
        self._open_vault = open_vault
        self._lost = lost
        self._life = life
        self._worked = 0.0
        self._sequence = 0
        self._nonce = b""
        self._talking = False  # with a part that waits for an answer of its own
        self.relay: Relay | None = None
        self.fault: Exception | None = None

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message; `StudentTimeout` after `wall` seconds, `StudentCrash` when there is none."""
        deadline = self._deadline(wall)
        reply = self._turn(message, deadline)
        while "ask" in reply:
            try:
                if self.relay is None:
                    raise StudentCrash(NO_ANSWER)
                told = self.relay(checked_message(reply["ask"]), deadline.left())
            except TimeoutError:
                self.fault = deadline.late
                raise _again(self.fault) from None
            except Exception as fault:
                self.fault = fault
                raise
            reply = self._turn({"told": told}, deadline, again=True)
        self._worked += deadline.used()
        return reply

    def _deadline(self, wall: float | None) -> TimeLimit:
        """Of a request: what it may take, or what is left of the box's life; what was lost does not count for that."""
        if self._worked > self._life / 2:
            self._worked = max(self._worked - self._lost(), 0.0)
        left = max(self._life - self._worked, 1e-3)
        if left >= (math.inf if wall is None else wall):
            return TimeLimit(wall, self._lost, _too_late(wall))
        return TimeLimit(left, self._lost, StudentTimeout(WORKED.format(self._life)))

    def talk(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """One turn of a conversation with a part over there."""
        deadline = TimeLimit(wall, self._lost)
        sent = {"told": message} if self._talking else {"op": "part", "message": message}
        reply = self._turn(sent, deadline, again=self._talking)
        self._talking = "ask" in reply
        return checked_message(reply.get("ask") or reply.get("value"))

    def _turn(self, message: dict[str, Any], deadline: TimeLimit, again: bool = False) -> dict[str, Any]:
        """One frame out and one in; `again` while a request is being answered."""
        if self.fault is not None:
            raise _again(self.fault)
        if not again:
            self._sequence += 1
            self._nonce = os.urandom(8)
        nonce = self._nonce
        frame = protocol.pack(message, nonce, self._sequence, TO_BOX)
        try:
            if self._pending():
                raise ProtocolError("bytes arrived that nobody asked for")
            self._send(frame, deadline)
            return _open(self._receive(nonce, deadline), nonce, self._sequence)
        except TimeoutError:
            fault: Exception = deadline.late
        except (EOFError, OSError):
            fault = StudentCrash("The process that ran your code died.")
        except ProtocolError as error:
            fault = StudentCrash(NO_ANSWER)
            fault.__cause__ = error
        except BaseException:
            self.fault = Infrastructure("a request was interrupted")
            raise
        self.fault = self._autopsy(fault)
        raise _again(self.fault)

    def vault(self) -> Channel:
        """The way to the vault of the box at the other end."""
        if self._open_vault is None:
            raise Infrastructure("there is no vault at the end of this channel")
        return self._open_vault()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
        self.fault = self.fault or Infrastructure("the channel is closed")

    def _pending(self) -> bool:
        self._socket.settimeout(0)
        try:
            if self._socket.recv(1, socket.MSG_PEEK):
                return True
        except BlockingIOError:
            return False
        raise EOFError

    def _patiently(self, step: Callable[[], int], deadline: TimeLimit) -> int:
        """What a step of the socket gives, tried until the deadline."""
        while True:
            self._socket.settimeout(deadline.left())
            try:
                return step()
            except TimeoutError:
                continue

    def _send(self, frame: bytes, deadline: TimeLimit) -> None:
        view = memoryview(frame)
        while view:
            view = view[self._patiently(partial(self._socket.send, view), deadline) :]

    def _receive(self, nonce: bytes, deadline: TimeLimit) -> bytearray:
        head = self._read(HEADER.size, deadline)
        header = protocol.read_header(head, TO_JUDGE)
        if header.nonce != nonce:  # before its body is waited for
            raise ProtocolError("this is not the reply to the request")
        frame = head
        while (left := HEADER.size + header.body - len(frame)) > 0:  # grow with what has come, not with promises
            frame = frame + self._read(min(left, 2**24), deadline)
        return frame

    def _read(self, size: int, deadline: TimeLimit) -> bytearray:
        """The next so many bytes, in memory of their own: where others look at it, memory cannot grow."""
        data = bytearray(size)
        view, start = memoryview(data), 0
        while start < size:
            count = self._patiently(partial(self._socket.recv_into, view[start:]), deadline)
            if count == 0:
                raise EOFError
            start += count
        return data


def _open(frame: bytearray, nonce: bytes, sequence: int) -> dict[str, Any]:
    header, reply, _ = protocol.unpack(frame, TO_JUDGE)
    if header.nonce != nonce or header.sequence != sequence:
        raise ProtocolError("this is not the reply to the request")
    if type(reply) is not dict or len(reply.keys() & {"value", "error", "ask"}) != 1:
        raise ProtocolError("a reply holds either a value or an error, or asks for something")
    return reply


def checked_message(message: Any) -> dict[str, Any]:
    """A message between two boxes, as far as the judge must know: a dict, with a list of tensors."""
    if type(message) is not dict or type(message.get("tensors", [])) is not list:
        raise StudentCrash(NO_ANSWER)
    return message


@contextmanager
def _outside_modes() -> Iterator[None]:
    """What is done in another box does not hear of a watched call in this one, though it is one process here."""
    modes = []
    while torch._C._len_torch_function_stack():
        modes.append(torch.overrides._pop_mode())
    try:
        with torch.inference_mode(False), torch.utils._python_dispatch._disable_current_modes():
            yield
    finally:
        for mode in reversed(modes):
            torch.overrides._push_mode(mode)


def _copied(message: dict[str, Any], caps: protocol.Caps) -> dict[str, Any]:
    """The same through bytes, as through a socket."""
    copy: dict[str, Any] = protocol.unpack(protocol.pack(message, bytes(8), 1, caps), caps)[1]
    return copy


def _too_late(wall: float | None) -> StudentTimeout:
    return StudentTimeout(f"Your code did not answer within {wall:g} seconds.")


def _again(fault: Exception) -> Exception:
    """The same fault as a new exception, so that no traceback grows."""
    fresh = type(fault)(*fault.args)
    fresh.__cause__ = fault.__cause__
    return fresh
