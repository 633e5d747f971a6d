"""The training runs of homework 5: sizes, batches, and functions that run a student's parts with fair arguments.

`SIZES` are those of the model whose weights a student hands in; `SMALL` those of a quick run that a grader can afford.
The parameters that a function may have beyond its contract are its author's own, so `call` offers arguments by name.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn

from course_utils.data import Images, cifar10, mnist5k, read_idx
from course_utils.instruments.torch_match import encoder_layer_state
from course_utils.notebook.checkpoints import CheckpointError, CheckpointForm, load_checkpoint
from course_utils.notebook.training import Loader, loader

SIZES = {"image_size": 28, "patch": 4, "channels": 1, "d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 3}
SIZES |= {"n_classes": 10}
EPOCHS = 16  # of the whole run
BATCH = 32
RATE = 3e-3
BAR = 0.93  # the share of held-out digits that a handed-in model must get right

SMALL = SIZES | {"patch": 7, "d_model": 48, "d_ff": 96, "n_layers": 2}  # 16 tokens
SMALL_STEPS = 300
SMALL_BATCH = 64

POOLS = ("cls", "gap", "map")
CHECKPOINT = "hw5_vision.safetensors"
LARGEST = 32 * 2**20  # bytes of a checkpoint; ours has 2 MB, with the optimizer's state

# what other people call the same thing: an argument is offered under the first of these names that a function has
NAMES = {
    "epochs": ("epochs", "n_epochs", "num_epochs", "max_epochs"),
    "steps": ("steps", "n_steps", "num_steps", "max_steps", "total_steps"),
    "channels": ("channels", "in_channels", "n_channels", "num_channels"),
    "n_classes": ("n_classes", "num_classes", "classes"),
    "image_size": ("image_size", "img_size", "size"),
}

Batch = tuple[Tensor, Tensor]  # images [B, C, H, W], labels [B]


class LongEpoch:
    """A loader whose single epoch has exactly `steps` batches, from as many passes through the images as it takes."""

    def __init__(self, batches: Loader, steps: int) -> None:
        self.batches, self.steps = batches, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return itertools.islice(self.batches.from_step(0), self.steps)


class Shifted:
    """A loader's batches with every image moved by up to `pixels` pixels, down or up and left or right, at random.

    What leaves the image is lost, and zeros come in. How far an image moves depends on the number of its step alone.
    """

    def __init__(self, batches: Loader, pixels: int = 2) -> None:
        self.batches, self.pixels = batches, pixels

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        first = self.batches.epoch * len(self)
        self.batches.epoch += 1
        return itertools.islice(self.from_step(first), len(self))

    def from_step(self, step: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Batches without end, beginning with number `step`, counted from 0."""
        for number, (images, *rest) in enumerate(self.batches.from_step(step), step):
            yield self._move(images, torch.Generator().manual_seed(number)), *rest

    def _move(self, images: Tensor, generator: torch.Generator) -> Tensor:
        B, _, H, W = images.shape
        down, right = torch.randint(2 * self.pixels + 1, (2, B, 1), generator=generator).to(images.device)
        rows = torch.arange(H, device=images.device) + down  # [B, H], into the padded image
        cols = torch.arange(W, device=images.device) + right  # [B, W]
        padded = F.pad(images, (self.pixels,) * 4).movedim(1, -1)  # [B, H + 2p, W + 2p, C]
        batch = torch.arange(B, device=images.device)[:, None, None]
        return padded[batch, rows[:, :, None], cols[:, None, :]].movedim(-1, 1)


def call(function: Callable[..., Any], *args: Any, **offered: Any) -> Any:
    """Call with these arguments, and with those offered by name for which the function has a parameter."""
    parameters = inspect.signature(function).parameters
    taken = {}
    for meaning, value in offered.items():
        name = next((name for name in NAMES.get(meaning, (meaning,)) if name in parameters), None)
        if name is not None:
            taken[name] = value
    return function(*args, **taken)


class Steps(Iterator[Any]):
    """Batches that are gone through once; it has a length, so that a bar knows its end."""

    def __init__(self, batches: Iterator[Any], n: int) -> None:
        self._batches, self._left = itertools.islice(batches, n), n

    def __len__(self) -> int:
        """How many are left."""
        return self._left

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._left -= 1
        return batch


def steps_from(batches: Any, first: int, total: int) -> Steps:
    """The batches of the steps `first` to `total - 1` of a run, epoch after epoch, for any loader."""
    if hasattr(batches, "from_step"):
        return Steps(batches.from_step(first), max(total - first, 0))
    epochs = itertools.chain.from_iterable(itertools.repeat(batches))
    return Steps(itertools.islice(epochs, first, None), max(total - first, 0))


def own_images(folder: str | Path) -> tuple[Images, Images]:
    """(train, test) from your own copy: CIFAR-10's binary version or its .tar.gz file, else the idx files of MNIST."""
    path = Path(folder)
    is_cifar = path.is_file() or any(path.rglob("data_batch_1*")) or any(path.glob("cifar-10*"))
    return cifar10(path) if is_cifar else read_idx(path)


# The small run of q5_6


def small_loader(seed: int = 0, steps: int = SMALL_STEPS, n: int = 4_000) -> LongEpoch:
    """The batches of the small run: `n` training images of MNIST-5k, in an order that the seed alone decides."""
    train, _ = mnist5k()
    return LongEpoch(loader(train.images[:n], train.labels[:n], batch_size=SMALL_BATCH, seed=seed), steps)


def train_small(
    make: Callable[..., nn.Module],
    train_classifier: Callable[..., Any],
    seed: int = 0,
    steps: int = SMALL_STEPS,
    pool: str | None = None,
) -> nn.Module:
    """Build a model and train it for `steps` steps, with the student's own function and its own defaults.

    With `pool` it is `ViT(**SMALL, pool=pool)`; without, anything that can be made from `channels` and `n_classes`,
    such as a SmallCNN. The weights, the batches and any dropout depend on `seed` alone.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make(**SMALL, pool=pool) if pool else build(make)
        call(train_classifier, model, small_loader(seed, steps), epochs=1, steps=steps)
    return model.eval()


def build(make: Callable[..., nn.Module]) -> nn.Module:
    """A model for the digits, from a class that may name its parameters as it likes or have defaults."""
    return call(make, channels=SIZES["channels"], n_classes=SIZES["n_classes"], image_size=SIZES["image_size"])


# What can be told about train_classifier and evaluate without any ViT


class Marked(nn.Module):
    """Answers what an image's first pixel says; in training mode it is wrong on purpose."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        """images [B, C, H, W] -> [B, n_classes]."""
        answers = images[:, 0, 0, 0].round().long()
        if self.training:
            answers = (answers + 1) % self.n_classes
        return self.scale * F.one_hot(answers, self.n_classes)


def evaluate_marked(
    evaluate: Callable[..., Any], answers: Tensor, labels: Tensor, batch_size: int, n_classes: int = 10
) -> Any:
    """What the function says of a model that gives these answers [N], where the labels [N] are right.

    The model arrives in training mode, as it does after training; the last batch may be a small one.
    """
    images = answers.float()[:, None, None, None].expand(-1, 1, 4, 4).contiguous()  # [N, 1, 4, 4]
    batches = [*zip(images.split(batch_size), labels.split(batch_size), strict=True)]
    return evaluate(Marked(n_classes).train(), batches)


# A checkpoint that was handed in


def checkpoint_form() -> CheckpointForm:
    """What is read of the checkpoint that is handed in, whichever pool it has."""
    D, sides, patch = SIZES["d_model"], SIZES["image_size"] // SIZES["patch"], SIZES["channels"] * SIZES["patch"] ** 2
    layer = encoder_layer_state(nn.TransformerEncoderLayer(D, SIZES["n_heads"], SIZES["d_ff"], device="meta"))
    shapes = {"positions": (1, sides**2, D), "embed.proj.weight": (D, patch), "embed.proj.bias": (D,)}
    for i in range(SIZES["n_layers"]):
        shapes |= {f"layers.{i}.{name}": tuple(value.shape) for name, value in layer.items()}
    shapes |= {"norm.weight": (D,), "norm.bias": (D,), "head.weight": (SIZES["n_classes"], D)}
    return CheckpointForm(shapes | {"head.bias": (SIZES["n_classes"],)}, LARGEST)


def load_model(make: Callable[..., nn.Module], path: str | Path = CHECKPOINT) -> nn.Module:
    """`ViT(**SIZES)` with the weights of a checkpoint; which pooling it has is seen from the names in the file."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no {path.name} beside the notebook")
    if path.stat().st_size > LARGEST:
        raise CheckpointError(
            f"{path.name} has {path.stat().st_size / 2**20:.0f} MB, more than the {LARGEST / 2**20:.0f} MB allowed: "
            f"save the model of the stated sizes, and nothing else"
        )
    model = make(**SIZES, pool=_pool(path))
    load_checkpoint(path, model)
    return model.eval()


def _pool(path: Path) -> str:
    try:
        with safe_open(path, framework="pt") as file:
            names = set(file.keys())
    except Exception:  # load_checkpoint says what is wrong with it
        return "map"
    return "cls" if "cls" in names else "map" if "map_head.probe" in names else "gap"
