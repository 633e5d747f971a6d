"""How long a box may take: what it waits for others on the machine does not count."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest

from autograder.box import protocol
from autograder.box.channel import PATIENCE, SocketChannel
from autograder.box.limits import Limits
from autograder.judge.seat import Seat, Sitting
from autograder.judge.verdicts import StudentTimeout


def _slow_box(connection: socket.socket, go: threading.Event) -> None:
    """Answers one request, once it may."""
    frame = bytearray(connection.recv(2**16))
    go.wait()
    header, _, _ = protocol.unpack(frame, protocol.TO_BOX)
    connection.sendall(protocol.pack({"value": "late"}, header.nonce, header.sequence, protocol.TO_JUDGE))


def _asked(lost: Callable[[threading.Event], float]) -> str:
    ours, theirs = socket.socketpair()
    go = threading.Event()
    box = threading.Thread(target=_slow_box, args=(theirs, go), daemon=True)
    box.start()
    channel = SocketChannel(ours, lost=lambda: lost(go))
    try:
        return str(channel.request({"op": "names", "names": []}, wall=0.2)["value"])
    finally:
        go.set()
        box.join()
        ours.close()
        theirs.close()


def test_a_box_that_waits_for_a_core_keeps_its_time():
    def lost(go: threading.Event) -> float:
        go.set()  # by now its time would be up
        return 30.0

    assert _asked(lost) == "late"


def test_a_box_that_sleeps_does_not():
    asked = []
    with pytest.raises(StudentTimeout, match="within 0.2 seconds"):
        _asked(lambda _: asked.append(0) or 0.0)
    assert asked == [0]


def test_patience_has_an_end():
    with pytest.raises(StudentTimeout):
        _asked(lambda _: 0.2 * PATIENCE / 2)


def test_a_box_tells_what_it_has_waited_since_it_was_last_asked(boxes):
    box = boxes.open()
    first, second = box._lost(), box._lost()
    assert first >= 0 and second >= 0 and box._waited == pytest.approx(first + second)
    box.close()
    boxes.open().close()  # the keeper's answers have not been mixed up


def test_requests_together_may_take_as_long_as_a_box_may_live_and_waiting_for_a_core_is_not_living():
    ours, theirs = socket.socketpair()
    lost, asked = iter([0.25, 0.0, 0.0]), []
    channel = SocketChannel(ours, lost=lambda: next(lost, 0.0), life=0.5)
    box = threading.Thread(target=_answers, args=(theirs, 0.15))
    box.start()
    with pytest.raises(StudentTimeout, match="at work for more than 0.5 seconds"):
        while len(asked) < 10:
            asked.append(channel.request({"op": "names", "names": []}, wall=10))
    assert len(asked) >= 4  # three without what was lost
    ours.close()
    box.join()
    theirs.close()


def _answers(connection: socket.socket, seconds: float) -> None:
    """A box that takes so long for every request."""
    with suppress(OSError):
        while head := connection.recv(protocol.HEADER.size, socket.MSG_WAITALL):
            header = protocol.read_header(head, protocol.TO_BOX)
            connection.recv(header.body, socket.MSG_WAITALL)
            time.sleep(seconds)
            connection.sendall(protocol.pack({"value": {}}, header.nonce, header.sequence, protocol.TO_JUDGE))


def test_a_submission_does_not_pay_for_what_its_judge_and_box_have_waited():
    waited = [0.0]
    seat = Seat(lambda *_: Sitting(cast(Any, None), lambda: None, lambda: waited[0]), Limits(wall_submission=0.05))
    seat.student()
    time.sleep(0.06)
    waited[0] = 30.0
    assert not seat.out_of_time
    time.sleep(0.06 * PATIENCE)
    assert seat.out_of_time
