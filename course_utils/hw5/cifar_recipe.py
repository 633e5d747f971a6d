"""A recipe for CIFAR-10 on a GPU: sizes, and what is done to the images before a model sees them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from course_utils.data import Images
from course_utils.hw5.vision import Shifted
from course_utils.notebook.training import Loader, loader

SIZES = {"image_size": 32, "patch": 4, "channels": 3, "d_model": 256, "n_heads": 8, "d_ff": 1024, "n_layers": 8}
SIZES |= {"n_classes": 10}
EPOCHS = 200
BATCH = 256
RATE = 1e-3
PATIENCE = 40  # epochs without a better accuracy before the run ends
CROP = 4  # pixels that the frame may move, on each side


class Mirrored:
    """A loader's batches with every image mirrored left to right, or not, at random; the step alone decides which."""

    def __init__(self, batches: Loader | Shifted) -> None:
        self.batches, self.epoch = batches, 0

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        self.epoch += 1
        return itertools.islice(self.from_step((self.epoch - 1) * len(self)), len(self))

    def from_step(self, step: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Batches without end, beginning with number `step`, counted from 0."""
        for number, (images, *rest) in enumerate(self.batches.from_step(step), step):
            generator = torch.Generator().manual_seed(-1 - number)  # another one than the shift of this step has
            chosen = torch.rand(len(images), generator=generator).to(images.device) < 0.5
            yield torch.where(chosen[:, None, None, None], images.flip(-1), images), *rest


def augmented(images: Tensor, labels: Tensor, device: torch.device | str) -> Mirrored:
    """Batches of random crops, out of a frame of zeros around each image, and mirrored at random."""
    return Mirrored(Shifted(loader(images, labels, batch_size=BATCH, device=device), CROP))


def standardised(train: Images, test: Images) -> tuple[Images, Images]:
    """Both with mean 0 and standard deviation 1 in each channel, by the training images' own figures."""
    mean = train.images.mean((0, 2, 3), keepdim=True)  # [1, C, 1, 1]
    spread = train.images.std((0, 2, 3), keepdim=True)
    return train._replace(images=(train.images - mean) / spread), test._replace(images=(test.images - mean) / spread)
