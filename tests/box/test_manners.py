"""What honest notebooks do and a box refuses: there it works another way, or the student is told why it does not."""

from __future__ import annotations

import pytest

from autograder.judge.proxies import Student

LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset
class Mine(DataLoader):
    pass
data = TensorDataset(torch.arange(8.0))
several = DataLoader(data, 4, num_workers=2, prefetch_factor=2, persistent_workers=True, timeout=5)
positional = Mine(data, 4, False, None, None, 2, drop_last=True, multiprocessing_context="fork")
assert [len(batch) for loader in (several, positional) for (batch,) in loader] == [4, 4, 4, 4]
assert positional.drop_last
"""
COMPILED = """
import torch
layer = torch.nn.Linear(2, 2)
layer.compile()
@torch.compile(fullgraph=True, mode="max-autotune")
def twice(x):
    return 2 * x
assert torch.compile(layer) is layer and layer(torch.ones(2)).shape == (2,)
assert torch.equal(torch.compile(twice, backend="inductor")(torch.ones(2)), torch.full((2,), 2.0))
"""
AWAITED = """
import asyncio
async def after(seconds):
    await asyncio.sleep(seconds)
    return seconds
waited = await asyncio.gather(after(0), after(0.01))
elsewhere = await asyncio.to_thread(sum, waited)
assert [one async for one in aiter_of(waited)] == waited
"""
AITER = "async def aiter_of(items):\n    for item in items:\n        yield item"
LOOP = "import asyncio\nassert asyncio.run(asyncio.sleep(0.01, 3)) == 3"
SHELL = "assert len(get_ipython().getoutput('ls')) == 0"


@pytest.fixture
def run(boxes):
    """Run cells in a box of their own; gives the fault of the last."""
    box = boxes.open()
    student = Student(box.channel, wall=boxes.limits.wall)
    yield lambda *cells: student.load([{"id": "cell", "source": source} for source in cells], wall=10)[-1].fault
    box.close()


@pytest.mark.parametrize("cells", [[LOADER], [COMPILED], [AITER, AWAITED], [LOOP], [SHELL]])
def test_what_needs_workers_compilers_or_sockets_works_without_them(run, cells) -> None:
    assert run(*cells) is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("await 1 +", "SyntaxError: invalid syntax (in your cell cell, line 1: `await 1 +`)"),
        (
            "import asyncio\nawait asyncio.sleep(0)\n1 / 0",
            "ZeroDivisionError: division by zero (in your cell cell, line 3",
        ),
        ("import mmap\nmmap.mmap(-1, 100)", "The box allows no network, no new sessions, no shared memory."),
        ("import os\nos.setsid()", "The box allows no network, no new sessions, no shared memory."),
    ],
)
def test_what_does_not_work_is_told(run, source, words) -> None:
    assert words in str(run(source))
