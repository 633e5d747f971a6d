"""What a call costs on this machine: seconds, and the most memory that its tensors held at one time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from course_utils.notebook.clock import peak_bytes


class Cost(NamedTuple):
    """Seconds of a call, and bytes."""

    seconds: float
    peak: int


def cost_of(f: Callable[..., Any], /, *args: Any, rounds: int = 5) -> Cost:
    """The median time of some calls f(*args), after one to warm up that is watched for its memory."""
    peak = peak_bytes(lambda: f(*args))
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - begin)
    return Cost(statistics.median(times), peak)
