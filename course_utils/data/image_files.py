"""Sets of images in their own file formats: idx (MNIST, Fashion-MNIST) and the binary version of CIFAR-10."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from course_utils.data.files import DataError, find, opened
from course_utils.data.images import DIGITS, Images

DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package dataset-fashion-mnist puts it
CLOTHES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
THINGS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
RECORD = 1 + 3 * 32 * 32  # CIFAR-10: one byte of label, then the red, green and blue values of 32 x 32 pixels
BATCHES = [f"data_batch_{i}.bin" for i in range(1, 6)]
TEST_BATCH = "test_batch.bin"
ARCHIVE = "cifar-10-binary.tar.gz"


def read_idx(folder: str | Path = DEBIAN, classes: list[str] | None = None) -> tuple[Images, Images]:
    """(train, test) from the four idx files of MNIST or Fashion-MNIST, plain or .gz, images [N, 1, H, W].

    Without a folder: Fashion-MNIST, where Debian's package dataset-fashion-mnist puts it. The names of the classes
    are those of Fashion-MNIST if the folder's name has "fashion" in it, and the digits otherwise.
    """
    folder = Path(folder)
    if classes is None:
        classes = CLOTHES if "fashion" in folder.resolve().name.lower() else DIGITS
    return _idx_split(folder, "train", classes), _idx_split(folder, "t10k", classes)


def cifar10(folder: str | Path, per_file: int = 10_000) -> tuple[Images, Images]:
    """(train, test) of CIFAR-10's binary version, images [N, 3, 32, 32].

    `folder` is the one with its six files, the one with its .tar.gz file, or that file.
    `per_file` is the number of images in each of the six files.
    """
    path = Path(folder)
    archive = path / ARCHIVE if path.is_dir() else path
    read = _from_tar(archive, per_file) if archive.is_file() else _from_folder(path)
    train = [_cifar_batch(name, read(name), per_file) for name in BATCHES]
    test = [_cifar_batch(TEST_BATCH, read(TEST_BATCH), per_file)]
    return _cifar_images(train), _cifar_images(test)


def _idx_split(folder: Path, split: str, classes: list[str]) -> Images:
    what = "the four idx files of MNIST or Fashion-MNIST"
    image_path = find(folder, [f"{split}-images-idx3-ubyte", f"{split}-images.idx3-ubyte"], what)
    label_path = find(folder, [f"{split}-labels-idx1-ubyte", f"{split}-labels.idx1-ubyte"], what)
    images, labels = _idx(image_path, 3), _idx(label_path, 1)
    if len(images) != len(labels):
        raise DataError(f"{image_path.name} has {len(images)} images, but {label_path.name} {len(labels)} labels")
    if labels.size and labels.max() >= len(classes):
        raise DataError(f"{label_path} has the label {labels.max()}, but there are {len(classes)} classes")
    return _images(images[:, None], labels, classes)


def _idx(path: Path, dimensions: int) -> np.ndarray:
    """An idx file: two zero bytes, 8 for unsigned bytes, the number of dimensions, the sizes, the values."""
    with opened(path) as stream:
        header = stream.read(4 + 4 * dimensions)
        if header[:4] != bytes([0, 0, 8, dimensions]):
            kind = "images" if dimensions == 3 else "labels"
            raise DataError(f"{path} is not an idx file of {kind}: it begins with {header[:4].hex() or 'nothing'}")
        if len(header) < 4 + 4 * dimensions:
            raise DataError(f"{path} ends inside its header: fetch it again")
        shape = struct.unpack(f">{dimensions}I", header[4:])
        values = stream.read()
    expected = int(np.prod(shape, dtype=object))
    if len(values) != expected:
        fault = "is cut" if len(values) < expected else "is too long"
        raise DataError(
            f"{path} {fault}: its header promises {' x '.join(map(str, shape))} = {expected} values, "
            f"it has {len(values)}. Fetch it again"
        )
    return np.frombuffer(values, np.uint8).reshape(shape)


def _from_folder(folder: Path) -> Callable[[str], bytes]:
    inner = folder / "cifar-10-batches-bin"
    folder = inner if inner.is_dir() else folder
    if (folder / "data_batch_1").is_file() or (folder / "cifar-10-batches-py").is_dir():
        raise DataError(
            f"{folder} is the python version of CIFAR-10, whose files may run code when they are read: "
            f"take the binary version, {ARCHIVE}"
        )

    def read(name: str) -> bytes:
        with opened(find(folder, [name], "CIFAR-10's binary version, or its .tar.gz file")) as stream:
            return stream.read()

    return read


def _from_tar(path: Path, per_file: int) -> Callable[[str], bytes]:
    """The six files, read in memory: nothing is unpacked, so no name in the archive can do harm."""
    wanted, found = {*BATCHES, TEST_BATCH}, {}
    try:
        with opened(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                name = Path(member.name).name
                if name in wanted and member.isfile() and (file := archive.extractfile(member)):
                    found[name] = file.read(per_file * RECORD + 1)  # one more than there should be: enough to tell
            while stream.read(1 << 20):
                pass  # the compressed file's own checksum is at its end
    except tarfile.TarError as error:
        raise DataError(f"{path} is not a whole archive ({error}): fetch it again") from None

    def read(name: str) -> bytes:
        if name not in found:
            raise DataError(f"{path} has no {name}: take the binary version, {ARCHIVE}")
        return found[name]

    return read


def _cifar_batch(name: str, data: bytes, per_file: int) -> np.ndarray:
    if len(data) != per_file * RECORD:
        fault = "is cut" if len(data) < per_file * RECORD else "is too long"
        raise DataError(
            f"{name} {fault}: {per_file} images of {RECORD} bytes are {per_file * RECORD} bytes, "
            f"it has {len(data)}. Fetch it again"
        )
    records = np.frombuffer(data, np.uint8).reshape(per_file, RECORD)
    bad = np.flatnonzero(records[:, 0] >= len(THINGS))
    if len(bad):
        raise DataError(f"{name} is damaged: image {bad[0]} has the label {records[bad[0], 0]}, labels go from 0 to 9")
    return records


def _cifar_images(batches: list[np.ndarray]) -> Images:
    records = np.concatenate(batches)
    return _images(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], THINGS)


def _images(pixels: np.ndarray, labels: np.ndarray, classes: list[str]) -> Images:
    """Bytes 0 to 255 [N, C, H, W] as floats in [0, 1]."""
    return Images(torch.tensor(pixels).float().div_(255), torch.tensor(labels).long(), list(classes))
