"""A box that does not answer, or answers what nobody asked: a verdict, and the judge goes on."""

import socket
import threading

import pytest
import torch

from autograder.box import protocol, server
from autograder.box.channel import SocketChannel
from autograder.judge.proxies import ModuleProxy, Student
from autograder.judge.verdicts import StudentCrash, StudentTimeout
from course_utils.checking.compare import Wrong

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


# sizes, counts and names that a box claims


def claimed(value):
    """A module whose box answers one question about it with this."""
    channel, thread = dishonest(lambda s, h: s.sendall(protocol.pack({"value": value}, h.nonce, h.sequence, ANY)))
    student = Student(channel, wall=10)
    return ModuleProxy(student, protocol.Name("Gate"), "Gate"), thread


ANY = protocol.Caps(tree=2**24, tensors=2**30, names=False)  # a box writes as it likes


@pytest.mark.parametrize(
    ("shapes", "fault"),
    [
        ({"w": (2**27,)}, Wrong),
        ({"w": (2**62, 2**62)}, Wrong),
        ({"w": (0, 2**62)}, Wrong),
        ({str(i): (2**16,) for i in range(300)}, Wrong),
        ({str(i): (1,) for i in range(1500)}, Wrong),
        ({"w": (-1,)}, StudentCrash),
        ({"w": (1.5,)}, StudentCrash),
        ({"w": (True,)}, StudentCrash),
        ({"w": ((2, 3),)}, StudentCrash),
        ({"w": (1,) * 100}, StudentCrash),
        ({"w": [2, 3]}, StudentCrash),
        ({"w" * 1000: (1,)}, StudentCrash),
        ({5: (1,)}, StudentCrash),
    ],
)
def test_claimed_shapes_are_held_against_caps(shapes, fault):
    module, thread = claimed(shapes)
    with pytest.raises(fault):
        module.parameter_shapes()
    thread.join()


@pytest.mark.parametrize("method", ["state_dict", "grads"])
def test_a_module_of_very_many_parameters_is_not_looked_into(method):
    module, thread = claimed({str(i): torch.zeros(1) for i in range(1500)})
    with pytest.raises(Wrong, match="1500 parameters"):
        getattr(module, method)()
    thread.join()


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(2**23, dtype=torch.uint8),
        [torch.zeros(2**20, dtype=torch.uint8)] * 5,
        torch.zeros(0, 2**26, dtype=torch.uint8),
        [torch.zeros(0, 2**21, dtype=torch.uint8)] * 3,
        torch.zeros(5 * 2**20),
        torch.zeros(2**23, dtype=torch.uint8).numpy(),
        [torch.zeros(1)] * 10_001,
    ],
    ids=["bytes", "many", "hidden behind a 0", "several hidden", "numbers", "array", "count"],
)
def test_a_large_reply_is_refused_before_it_is_unpacked(value):
    with pytest.raises(protocol.ProtocolError):
        protocol.unpack(protocol.pack(value, bytes(8), 1, ANY), protocol.TO_JUDGE)
    with pytest.raises(protocol.ProtocolError):  # an honest box says so itself
        protocol.pack(value, bytes(8), 1, protocol.TO_JUDGE)


def test_an_ordinary_module_passes():
    module, thread = claimed({f"layers.{i}.weight": (256, 64) for i in range(100)})
    assert len(module.parameter_shapes()) == 100
    thread.join()
