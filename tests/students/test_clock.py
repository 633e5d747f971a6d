"""Time in turns and memory at its fullest, as notebooks measure them."""

import torch
from torch import nn

from course_utils.notebook.clock import in_turns, peak_bytes

MEGA = torch.ones(1000, 250)  # a million bytes


def test_memory_at_its_fullest_counts_what_lives_together_and_no_views():
    def one_after_the_other():
        for _ in range(5):
            _ = MEGA + 1
            del _

    assert peak_bytes(lambda: (MEGA + 1) + 1) == 2_000_000
    assert peak_bytes(lambda: [MEGA + i for i in range(5)]) == 5_000_000
    assert peak_bytes(one_after_the_other) == 1_000_000
    assert peak_bytes(lambda: MEGA.mT.contiguous()[:3]) == 1_000_000  # a copy, of which a part is a view
    assert peak_bytes(lambda: (MEGA.view(-1)[:5], MEGA.mT)) == 0


def test_memory_of_a_backward_pass_is_counted_too():
    weight = nn.Parameter(MEGA.clone())
    forward = peak_bytes(lambda: (weight * MEGA).exp().sum())
    both = peak_bytes(lambda: (weight * MEGA).exp().sum().backward())
    assert 2_000_000 <= forward < both and weight.grad is not None


def test_calls_take_turns_the_first_round_is_not_counted_and_threads_stay():
    torch.set_num_threads(2)
    order = []
    found = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3)
    assert order == ["a", "b"] * 4 and set(found) == {"a", "b"} and min(found.values()) >= 0
    assert torch.get_num_threads() == 2
    slow, fast = (lambda n=n: torch.ones(n).sum() for n in (10**7, 10))
    times = in_turns({"slow": slow, "fast": fast}, rounds=3)
    assert times["slow"] > 10 * times["fast"]
