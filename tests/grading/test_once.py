"""Expected values that are computed once."""

from __future__ import annotations

import pytest
import torch

from autograder.suites import once as module
from autograder.suites.once import once


@pytest.fixture
def asked() -> list[object]:
    return []


def test_the_same_inputs_are_worked_out_once_and_nobody_can_change_what_the_next_one_gets(asked) -> None:
    @once
    def doubled(x, times=2):
        asked.append(x)
        return {"x": x * times}

    x = torch.arange(3.0)
    doubled(x)["x"].zero_()
    doubled(x.clone())["x"].zero_()
    assert doubled(x)["x"].tolist() == [0.0, 2.0, 4.0]
    assert len(asked) == 1
    for other in (x.double(), x[:2], x.view(1, 3), x + 1e-7):
        doubled(other)
    doubled(x, 3)
    doubled(x, 3.0)
    assert len(asked) == 7


def test_what_is_no_plain_data_is_worked_out_each_time(asked) -> None:
    @once
    def applied(f):
        asked.append(f)
        return f(1)

    assert [applied(abs), applied(abs)] == [1, 1]
    assert len(asked) == 2


def test_room_is_bounded(asked, monkeypatch) -> None:
    @once
    def zeros(n):
        asked.append(n)
        return torch.zeros(n)

    monkeypatch.setattr(module, "ROOM", 1000)
    for n in (200, 201, 200):
        zeros(n)
    assert asked == [200, 201, 200]
