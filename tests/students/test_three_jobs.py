"""The toy task for heads: its batches say what they promise, and three heads learn one job each."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from course_utils.hw2 import three_jobs


class ThreeHeads(nn.Module):
    """Attention with three heads of width 8."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(24, 24) for _ in range(4))

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        pairs = ((self.q, query), (self.k, key), (self.v, value))
        q, k, v = (project(x).unflatten(-1, (3, 8)).transpose(1, 2) for project, x in pairs)
        weights = (q @ k.mT / math.sqrt(8)).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2)), weights


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tensors this small are slower on many threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_places_of_the_jobs_are_the_previous_the_first_and_the_marked() -> None:
    symbols, marked, places = three_jobs.three_jobs_batch(5, torch.Generator().manual_seed(0))
    assert symbols.shape == (5, 12) and places.shape == (5, 12, 3)
    assert places[:, :, 0].tolist() == [[0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]] * 5
    assert not places[:, :, 1].any()
    assert torch.equal(places[:, :, 2], marked[:, None].expand(5, 12))


def test_three_heads_learn_one_job_each(one_thread: None) -> None:
    torch.manual_seed(0)
    model = three_jobs.ThreeJobs(ThreeHeads())
    losses = three_jobs.train_three_jobs(model)
    assert len(losses) == three_jobs.STEPS and losses[-1] < 0.1 < losses[0]
    assert min(three_jobs.job_accuracy(model).values()) > 0.95
    found = three_jobs.head_jobs(model)  # [3, 3]
    assert sorted(found.argmax(0).tolist()) == [0, 1, 2]
    assert found.amax(0).min() > 0.9
