"""How long a box may take: what it waits for others on the machine does not count."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from autograder.box import protocol
from autograder.box.channel import PATIENCE, SocketChannel
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
