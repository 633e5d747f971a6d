"""Parts in another box: student code does the same with stand-ins as with the parts, and sees nothing of them."""

from __future__ import annotations

import pytest
import torch
from box_kit import LIMITS, NOTEBOOKS

from autograder.box.channel import LoopbackChannel
from autograder.box.sandbox import BoxFactory, pick
from autograder.judge import relay as relays
from autograder.judge.faults import StudentRaised
from autograder.judge.proxies import Student
from autograder.judge.relay import Relay
from autograder.judge.verdicts import StudentCrash
from autograder.judge.watch import watch

PARTS = (NOTEBOOKS / "parts.py").read_text()
STUDENT = (NOTEBOOKS / "with_parts.py").read_text()
NAMES = ("scaled", "both", "Layer", "Model", "trained", "copied", "called")


@pytest.fixture(scope="module")
def boxes():
    with BoxFactory(pick(), LIMITS) as made:
        yield made


def _open(kind, boxes, source, relay=None, **cell):
    box = None if kind == "loopback" else boxes.open()
    channel = LoopbackChannel() if box is None else box.channel
    student = Student(channel, wall=60)
    if relay is not None:
        student.relay = relay
        relay.serve(channel)
        assert student.load([{"id": "parts", "source": "", "keep": NAMES, "stand_ins": True}])[0].fault is None
    (outcome,) = student.load([{"id": "answers", "source": source}])
    assert outcome.fault is None
    return student, channel.close if box is None else box.close


@pytest.fixture(scope="module", params=["loopback", "box"])
def student(request, boxes):
    """Student code with stand-ins, the parts being elsewhere."""
    far, close_far = _open(request.param, boxes, PARTS)
    near, close_near = _open(request.param, boxes, STUDENT, Relay(far.channel, NAMES))
    yield near
    close_near()
    close_far()


@pytest.fixture(scope="module")
def together():
    """The same code beside the parts themselves."""
    student, close = _open("loopback", None, PARTS + STUDENT)
    yield student
    close()


def _x():
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def _same(got, expected):
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(got, expected)
    elif isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            _same(one, other)
    elif isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for key in expected:
            _same(got[key], expected[key])
    elif isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-5)
    else:
        assert got == expected


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("values", (_x(),)),
        ("gradients", (_x(),)),
        ("jacobians", (_x()[0],)),
        ("refused", ()),
        ("through_a_block", (_x(),)),
        ("through_a_block", (_x(), 0.5)),
        ("changed_parts", (_x(),)),
        ("training", (False,)),
        ("training", (True,)),
        ("handed_back", (_x(),)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_stand_ins_do_what_the_parts_do(student, together, name, args):
    _same(student[name](*args), together[name](*args))


def test_gradients_cross_both_boxes(student, together):
    x, y = _x().requires_grad_(), _x().requires_grad_()
    student["values"](x)[0].sum().backward()
    together["values"](y)[0].sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_nothing_of_the_parts_can_be_read(student, together):
    assert together["spied"]() is True, "where they are, the spy sees them"
    if isinstance(student.channel, LoopbackChannel):
        return  # one process
    assert student["spied"]() is False


def test_what_is_no_tensor_is_not_taken_for_one(student):
    assert student["pretended"]() == ["refused"] * 4


def test_what_stand_ins_do_not_ask_for_is_refused(student):
    told = student["asked_for_more"]()
    assert told[:5] == ["TypeError", "TypeError", "KeyError", "KeyError", "KeyError"]
    assert all("cannot be called from here" in text for text in told[5:])


@pytest.mark.parametrize(("name", "device"), [("watched", "cpu"), ("watched", "meta"), ("watched_layer", "cpu")])
def test_in_a_watched_call_what_the_parts_do_is_counted(student, together, name, device):
    seen = []
    for one in (student, together):
        with watch(one, device=device) as session:
            seen.append(session.call(one[name], _x()))
    assert seen[0].value.shape == seen[1].value.shape
    if name == "watched":  # else the weights are drawn in other places
        torch.testing.assert_close(seen[0].value, seen[1].value)
    assert seen[0].strays == seen[1].strays == 0
    assert seen[0].flops == seen[1].flops and seen[0].names["tanh"] == seen[1].names["tanh"]


def test_in_a_watched_call_devices_are_told_apart(student):
    with watch(student, device="meta") as session, pytest.raises(StudentRaised, match="same device"):
        session.call(student["watched_layer"], _x())


def test_of_a_watched_call_the_other_box_keeps_nothing(student):
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    before = student["plain_layer"](x)
    with watch(student) as session:
        session.call(student["watched_weights"], x)
    torch.testing.assert_close(student["plain_layer"](x), before)


def test_too_much_is_refused(boxes, monkeypatch):
    monkeypatch.setattr(relays, "MAX_MESSAGES", 50)
    far, close_far = _open("box", boxes, PARTS)
    near, close_near = _open("box", boxes, STUDENT, Relay(far.channel, NAMES))
    near.seed(0)
    with pytest.raises(StudentCrash, match="asked too much of the course's own parts"):
        near["endless"](_x())
    close_near()
    close_far()
