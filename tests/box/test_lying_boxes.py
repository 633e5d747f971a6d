"""A box that does not answer, or answers what nobody asked: a verdict, and the judge goes on."""

import socket
import threading

import pytest
import torch

from autograder.box import protocol, server
from autograder.box.channel import SocketChannel
from autograder.judge.proxies import Student
from autograder.judge.verdicts import StudentCrash, StudentTimeout

# a box that does not answer


def dishonest(reply):
    """A channel whose other end reads one request and then does as `reply` says."""
    ours, theirs = socket.socketpair()

    def run():
        with theirs:
            frame = server._read_frame(theirs)
            reply(theirs, *protocol.unpack(frame, protocol.TO_BOX)[:1])

    thread = threading.Thread(target=run)
    thread.start()
    return SocketChannel(ours), thread


def good(header, value, sequence=None):
    sequence = header.sequence if sequence is None else sequence
    return protocol.pack({"value": value}, header.nonce, sequence, protocol.TO_JUDGE)


@pytest.mark.parametrize(
    "reply",
    [
        lambda s, h: None,
        lambda s, h: s.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 9),
        lambda s, h: s.sendall(good(h, 1)[:-1]),
        lambda s, h: s.sendall(good(h, 1, sequence=h.sequence + 1)),
        lambda s, h: s.sendall(protocol.pack({"value": 1}, b"guessed!", h.sequence, protocol.TO_JUDGE)),
        lambda s, h: s.sendall(protocol.pack([1], h.nonce, h.sequence, protocol.TO_JUDGE)),
        lambda s, h: s.sendall(protocol.pack({"value": 1, "error": 2}, h.nonce, h.sequence, protocol.TO_JUDGE)),
        lambda s, h: s.sendall(protocol.HEADER.pack(protocol.MAGIC, h.nonce, h.sequence, 2**31, 2**62)),
        lambda s, h: s.sendall(protocol.pack({"error": 5}, h.nonce, h.sequence, protocol.TO_JUDGE)),
    ],
)
def test_whatever_is_not_an_answer_is_a_crash(reply):
    channel, thread = dishonest(reply)
    with pytest.raises(StudentCrash):
        Student(channel, wall=10).kinds(["x"])
    thread.join()
    channel.close()


def test_an_extra_reply_is_found_before_the_next_request():
    def reply(connection, header):
        connection.sendall(good(header, {}) + good(header, {"x": "callable"}))
        release.wait(10)

    release = threading.Event()
    channel, thread = dishonest(reply)
    student = Student(channel, wall=10)
    assert student.kinds(["x"]) == {}
    with pytest.raises(StudentCrash):
        student.kinds(["x"])
    release.set()
    thread.join()
    channel.close()


def test_silence_is_a_timeout_and_the_channel_stays_broken():
    release = threading.Event()
    channel, thread = dishonest(lambda s, h: release.wait(10))
    student = Student(channel, wall=0.05)
    for _ in range(2):
        with pytest.raises(StudentTimeout):
            student.kinds(["x"])
    release.set()
    thread.join()
    channel.close()


@pytest.mark.parametrize(
    "value, extra",
    [
        (torch.ones(2), {"call": 1, "differentiable": [5]}),
        (torch.ones(2), {"call": 1, "differentiable": [0, 0]}),
        (torch.ones(2), {"call": 1, "differentiable": "x"}),
        (torch.ones(2).long(), {"call": 1, "differentiable": [0]}),
        (torch.ones(2), {"call": "x", "differentiable": [0]}),
        (1, {"mutated": "x"}),
        (1, {"mutated": [3]}),
        (1, {"printed": 3}),
    ],
)
def test_forged_bookkeeping_is_a_crash(value, extra):
    class Forger:
        def request(self, message, wall=None):
            return {"value": {"f": "callable"}} if message["op"] == "names" else {"value": value, **extra}

    with pytest.raises(StudentCrash):
        Student(Forger())["f"](torch.ones(1, requires_grad=True))


@pytest.mark.parametrize("method", ["state_dict", "grads", "parameter_shapes"])
@pytest.mark.parametrize("value", [[], {"weight": "heavy"}, {3: torch.ones(1)}])
def test_forged_weights_are_a_crash(method, value):
    class Forger:
        def request(self, message, wall=None):
            replies = {"names": {"M": "class"}, "call": protocol.Handle(1, "module"), "method": value}
            return {"value": replies[message["op"]]}

    with pytest.raises(StudentCrash):
        getattr(Student(Forger())["M"](), method)()


def test_a_forged_gradient_is_a_crash():
    class Forger:
        def request(self, message, wall=None):
            if message["op"] == "call":
                return {"value": torch.ones(2), "call": 1, "differentiable": [0]}
            return {"value": {"f": "callable"} if message["op"] == "names" else [torch.ones(7)]}

    x = torch.ones(1, requires_grad=True)
    with pytest.raises(StudentCrash):
        Student(Forger())["f"](x).sum().backward()
