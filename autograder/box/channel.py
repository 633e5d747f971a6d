"""The judge's side of the channel: one request, one reply, or a verdict on why there is none."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

from autograder.box import protocol
from autograder.box.protocol import HEADER, TO_BOX, TO_JUDGE, ProtocolError
from autograder.box.server import Server
from autograder.judge.verdicts import Infrastructure, StudentCrash, StudentTimeout

NO_ANSWER = "Your code sent something that is not an answer."


class Channel(Protocol):
    """Whatever answers requests."""

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message, within `wall` seconds."""

    def close(self) -> None:
        """Hang up."""


class LoopbackChannel:
    """A server in this process, reached through real bytes: for trusted code only, so without a time limit."""

    def __init__(self) -> None:
        self._server = Server()
        self._sequence = 0

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message; `wall` is not enforced."""
        self._sequence += 1
        nonce = os.urandom(8)
        reply = self._server.handle(protocol.pack(message, nonce, self._sequence, TO_BOX))
        return _open(bytearray(reply), nonce, self._sequence)

    def close(self) -> None:
        """Forget the notebook."""
        self._server.close()


class SocketChannel:
    """A server at the other end of a socket; after the first fault every request fails."""

    def __init__(
        self, connection: socket.socket, autopsy: Callable[[Exception], Exception] = lambda fault: fault
    ) -> None:
        """`autopsy` is told of the first fault and says what the fault really is."""
        self._socket = connection
        self._autopsy = autopsy
        self._sequence = 0
        self.fault: Exception | None = None

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        """The reply to a message; `StudentTimeout` after `wall` seconds, `StudentCrash` when there is none."""
        if self.fault is not None:
            raise _again(self.fault)
        deadline = None if wall is None else time.monotonic() + wall
        self._sequence += 1
        nonce = os.urandom(8)
        frame = protocol.pack(message, nonce, self._sequence, TO_BOX)
        try:
            if self._pending():
                raise ProtocolError("bytes arrived that nobody asked for")
            self._send(frame, deadline)
            return _open(self._receive(nonce, deadline), nonce, self._sequence)
        except TimeoutError:
            fault: Exception = StudentTimeout(f"Your code did not answer within {wall:g} seconds.")
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

    def _wait(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _send(self, frame: bytes, deadline: float | None) -> None:
        view = memoryview(frame)
        while view:
            self._wait(deadline)
            view = view[self._socket.send(view) :]

    def _receive(self, nonce: bytes, deadline: float | None) -> bytearray:
        frame = bytearray(HEADER.size)
        self._fill(frame, 0, HEADER.size, deadline)
        header = protocol.read_header(frame, TO_JUDGE)
        if header.nonce != nonce:  # before its body is waited for
            raise ProtocolError("this is not the reply to the request")
        end = HEADER.size
        while end < HEADER.size + header.body:  # grow with what has come, not with what is promised
            start, end = end, min(HEADER.size + header.body, end + 2**24)
            frame.extend(bytes(end - start))
            self._fill(frame, start, end, deadline)
        return frame

    def _fill(self, frame: bytearray, start: int, end: int, deadline: float | None) -> None:
        with memoryview(frame) as view:
            while start < end:
                self._wait(deadline)
                count = self._socket.recv_into(view[start:end])
                if count == 0:
                    raise EOFError
                start += count


def _open(frame: bytearray, nonce: bytes, sequence: int) -> dict[str, Any]:
    header, reply, _ = protocol.unpack(frame, TO_JUDGE)
    if header.nonce != nonce or header.sequence != sequence:
        raise ProtocolError("this is not the reply to the request")
    if type(reply) is not dict or ("value" in reply) == ("error" in reply):
        raise ProtocolError("a reply holds either a value or an error")
    return reply


def _again(fault: Exception) -> Exception:
    """The same fault as a new exception, so that no traceback grows."""
    fresh = type(fault)(*fault.args)
    fresh.__cause__ = fault.__cause__
    return fresh
