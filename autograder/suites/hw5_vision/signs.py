"""Ten signs that nobody has seen before, each drawn many times over: images to learn from at grading time.

Which sign has which label is drawn too, so nothing that was learned or written down before the grading is of use.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CLASSES, SIDE, NOISE = 10, 28, 0.2
TRAIN, HELD_OUT = 400, 300
FIRST, FIRST_CLASSES = 20, 4  # of the images to train on, the first ones show so few signs


class Drawn(NamedTuple):
    """Images [N, 1, 28, 28] from 0 to 1 and labels [N]: to train on, held out, and more that never leave the judge."""

    images: Tensor
    labels: Tensor
    held_out: Tensor
    held_out_labels: Tensor
    fresh: Tensor
    fresh_labels: Tensor


@lru_cache(maxsize=8)
def draw_signs(seed: int) -> Drawn:
    """Smooth black and white shapes with noise; of the first twenty images, only four signs."""
    rng = torch.Generator().manual_seed(seed)
    shapes = F.interpolate(torch.rand(CLASSES, 1, 5, 5, generator=rng), (SIDE, SIDE), mode="bicubic") > 0.5

    def shown(labels: Tensor) -> tuple[Tensor, Tensor]:
        noise = NOISE * torch.randn(len(labels), 1, SIDE, SIDE, generator=rng)
        return (shapes[labels] + noise).clamp(0, 1), labels

    def mixed(n: int, classes: int = CLASSES) -> Tensor:
        return (torch.arange(n) % classes)[torch.randperm(n, generator=rng)]

    first = torch.randperm(CLASSES, generator=rng)[mixed(FIRST, FIRST_CLASSES)]
    train = torch.cat([first, mixed(TRAIN - FIRST)])
    return Drawn(*shown(train), *shown(mixed(HELD_OUT)), *shown(mixed(HELD_OUT)))
