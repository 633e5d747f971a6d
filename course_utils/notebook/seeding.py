"""One seed for every source of random numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np


def seed_everything(seed: int) -> Any:
    """Seed python, numpy and torch (every device), and return a fresh torch generator with the same seed.

    Where there is no torch, it is a generator of NumPy's.
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        import torch
    except ImportError:
        return np.random.default_rng(seed)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)
