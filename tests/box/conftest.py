"""Boxes of every backend that works here, and students inside or beside them."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for box_kit

from box_kit import LIMITS, NOTEBOOKS, at_rest

from autograder.box.backends import BACKENDS
from autograder.box.channel import LoopbackChannel, SocketChannel
from autograder.box.sandbox import BoxFactory, available
from autograder.judge.proxies import Student


@pytest.fixture(scope="package")
def factories():
    """One factory per backend; their zygotes warm up side by side."""
    os.environ["SECRET_TOKEN"] = "hunter2"
    made = {name: BoxFactory(name, LIMITS) for name in available()}
    for factory in made.values():
        factory.__enter__()
    yield made
    for factory in made.values():
        factory.close()
    del os.environ["SECRET_TOKEN"]


@pytest.fixture(params=list(BACKENDS))
def boxes(request, factories):
    if request.param not in factories:
        pytest.skip(f"{request.param} does not work here")
    factory = factories[request.param]
    factory.limits = LIMITS
    return factory


@pytest.fixture
def enter(boxes):
    """Open a box with the notebook in it, and check afterwards that nothing is left."""
    opened = []

    def enter(files=None, **limits):
        boxes.limits = replace(LIMITS, **limits)
        box = boxes.open()
        opened.append(box)
        student = Student(box.channel, wall=boxes.limits.wall)
        student.add_files(files or {})
        cell = {"id": "attacks", "source": (NOTEBOOKS / "prisoner.py").read_text()}
        assert [outcome.fault for outcome in student.load([cell])] == [None]
        return student

    boxes.open().close()  # the zygote is up
    before = at_rest(boxes)
    yield enter
    for box in opened:
        box.close()
    assert at_rest(boxes) == before, "processes were left behind"
    box = boxes.open()
    assert box.channel.request({"op": "names", "names": ["torch"]}, wall=15) == {"value": {}}
    box.close()


def over_socket(source):
    """A student whose server runs in a process of its own."""
    ours, theirs = socket.socketpair()
    code = (
        "import socket; from autograder.box.server import serve; "
        f"serve(socket.socket(fileno={theirs.fileno()}), socket.socketpair()[0])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()])
    theirs.close()
    channel = SocketChannel(ours)
    student = Student(channel, wall=60)
    student.load([{"id": "answers", "source": source}])
    return student, lambda: (channel.close(), process.wait())


@pytest.fixture(params=["loopback", "socket"], scope="package")
def student(request):
    source = (NOTEBOOKS / "answers.py").read_text()
    if request.param == "loopback":
        channel = LoopbackChannel()
        student = Student(channel)
        assert [outcome.fault for outcome in student.load([{"id": "answers", "source": source}])] == [None]
        yield student
        channel.close()
    else:
        student, close = over_socket(source)
        yield student
        close()
