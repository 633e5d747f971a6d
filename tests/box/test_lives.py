"""The lives of boxes and zygotes, on every backend that works here: how they end, and what they leave: nothing."""

import os
import signal

import pytest
from box_kit import LIMITS, WALLED, at_rest

from autograder.box.keeper import STARTED, start_ahead, stop
from autograder.box.sandbox import BoxFactory, available
from autograder.box.zygote import _family
from autograder.judge.faults import StudentRaised
from autograder.judge.verdicts import Infrastructure, StudentCrash, StudentError, StudentTimeout


@pytest.mark.parametrize("how", ["exit", "segfault", "abort", "close"])
def test_a_death_is_a_crash_and_the_next_box_works(enter, how):
    student = enter()
    with pytest.raises(StudentCrash):
        student["crash"](how)
    with pytest.raises(StudentCrash):
        student["answer"](1)
    assert enter()["answer"](1) == 2


def test_stopping_itself_gains_nothing(enter):
    student = enter()
    crash = student["crash"]
    student.wall = 1
    with pytest.raises((StudentTimeout, StudentCrash)):
        crash("stop")


def test_an_orphan_dies_with_its_box(enter):
    assert enter()["orphan"]() == "left"


def test_leaving_and_asking_are_errors_not_deaths(enter):
    student = enter()
    sources = ("import sys; sys.exit(0)", "raise KeyboardInterrupt")
    outcomes = student.load([{"id": "leave", "source": source} for source in sources])
    assert all(isinstance(outcome.fault, StudentRaised) for outcome in outcomes)
    with pytest.raises(StudentError, match="EOFError"):
        student["ask"]()


def test_a_lost_zygote_is_started_again(factories):
    boxes = next(iter(factories.values()))
    box = boxes.open()
    for pid in sorted(_family(boxes._keeper._process.pid), reverse=True):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    with pytest.raises(Infrastructure):
        box.channel.request({"op": "names", "names": []}, wall=15)
    box.close()
    box = boxes.open()
    assert box.channel.request({"op": "names", "names": []}, wall=15) == {"value": {}}
    box.close()


def test_two_hundred_boxes_leave_nothing_behind(factories):
    boxes = next(iter(factories.values()))
    boxes.limits = LIMITS
    boxes.open().close()
    files, family = len(os.listdir("/proc/self/fd")), at_rest(boxes)
    for _ in range(200):
        boxes.open().close()
    assert len(os.listdir("/proc/self/fd")) == files
    assert at_rest(boxes) == family


def test_without_namespaces_every_worker_has_a_zygote_of_its_own():
    try:
        start_ahead("process")
        assert "process" not in STARTED
    finally:
        stop()


def test_a_branch_of_a_zygote_keeps_its_own_boxes():
    for name in set(available()) & set(WALLED):
        try:
            start_ahead(name)
            one, other = BoxFactory(name, LIMITS), BoxFactory(name, LIMITS)
            first, second = one.open(), other.open()
            assert one._keeper._process is None and other._keeper._process is None  # no import of torch of their own
            one.close()
            with pytest.raises(Infrastructure):
                first.channel.request({"op": "names", "names": []}, wall=15)
            assert second.channel.request({"op": "names", "names": []}, wall=15) == {"value": {}}
            root = STARTED[name]._process.pid
            stop()
            assert _family(root) == {root}, "processes were left behind"
            assert other.open().channel.request({"op": "names", "names": []}, wall=15) == {"value": {}}  # anew
            other.close()
        finally:
            stop()
