"""Larger sets of images by name: `course data` fetches and checks them, and the notebook reads them again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from course_utils.data import DataError, DownloadError, Images, cifar10, download_set, read_idx

Reader = Callable[[Path], tuple[Images, Images]]
SETS: dict[str, tuple[str, Reader]] = {  # the folder that has it, and its reader
    "cifar10": ("cifar10", cifar10),
    "fashion": ("fashion-mnist", read_idx),
}


def named_images(name: str, folder: Path = Path()) -> tuple[Images, Images]:
    """(train, test) of a set that `course data` has put into this folder."""
    place, read = SETS[name]
    return read(folder / place)


def tell_fashion(folder: Path, address: str | None = None) -> tuple[bool, list[str]]:
    """Fashion-MNIST, 31 MB: whether it is there now, and what to say about it."""
    return _tell("fashion", folder, address)


def tell_cifar10(folder: Path, address: str | None = None) -> tuple[bool, list[str]]:
    """CIFAR-10, 170 MB: whether it is there now, and what to say about it."""
    return _tell("cifar10", folder, address)


def _tell(name: str, folder: Path, address: str | None) -> tuple[bool, list[str]]:
    """The set is read to its end in the folder or in one of its name; where that fails, it is fetched and checked."""
    own, _ = SETS[name]
    for place in (folder / own, folder):
        with suppress(DataError):
            return True, _told(name, place)
    try:
        return True, _told(name, download_set(own, folder, address))
    except (DownloadError, DataError) as error:
        return False, [str(error)]


def _told(name: str, place: Path) -> list[str]:
    own, read = SETS[name]
    train, test = read(place)
    counts = f"{len(train.labels):,} training and {len(test.labels):,} test images"
    value = name if place.name == own else place.resolve()
    return [
        f"{place}: {counts} of {', '.join(train.classes)}.",
        f"Homework 5 uses them where the environment variable COURSE_IMAGES is {value}",
    ]
