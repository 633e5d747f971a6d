"""What makes a run the same everywhere: one seed for every source of random numbers, and the number of threads."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np

THREADS = "COURSE_THREADS"


def seed_everything(seed: int) -> Any:
    """Seed python, numpy and torch (every device), and return a fresh torch generator with the same seed.

    Where there is no torch, it is a generator of NumPy's. torch computes on one thread from here on, or on as many as
    COURSE_THREADS says: sums of several threads differ in their last digits from machine to machine, and where others
    compute too, threads that wait for each other make a run of small matrices many times slower.
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        import torch
    except ImportError:
        return np.random.default_rng(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(_threads())
    return torch.Generator().manual_seed(seed)


def _threads() -> int:
    asked = os.environ.get(THREADS, "").strip() or "1"
    if not asked.isdecimal() or int(asked) == 0:
        raise ValueError(f"{THREADS}={asked}: give the number of threads, 1 or more, or leave it out.")
    return int(asked)
