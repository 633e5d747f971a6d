"""The judge's own work on one submission has an end, in processor time."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from autograder.grading.task import _at_most
from autograder.judge.seat import Seat, Sitting
from autograder.judge.verdicts import StudentTimeout


def nobody(*_: object) -> Sitting:
    raise AssertionError("nobody is asked")


def test_a_case_that_keeps_the_judge_busy_is_stopped() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(StudentTimeout, match="took too long"), _at_most(0.2):
        while True:
            pass
    assert signal.getsignal(signal.SIGPROF) == before and signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_waiting_costs_nothing() -> None:
    with _at_most(0.5):
        time.sleep(0.7)
    assert not Seat(nobody, processor=60.0).out_of_time


def test_between_cases_the_time_is_looked_at_too() -> None:
    seat = Seat(nobody, processor=0.05)
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert seat.out_of_time


def test_a_thread_of_a_cluster_s_worker_works_without_a_signal() -> None:
    done = []

    def work() -> None:
        with _at_most(60.0):
            done.append(signal.getitimer(signal.ITIMER_PROF))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [(0.0, 0.0)]
