"""Sets of images: those inside packages, and files in the real formats, whole and broken."""

import gzip
import io
import struct
import tarfile

import numpy as np
import pytest
import torch

from course_utils.data import DataError, cifar10, digits8, mnist5k, read_idx

RECORD = 3073


@pytest.mark.parametrize(("load", "size", "counts"), [(mnist5k, 28, (4000, 1000)), (digits8, 8, (1437, 360))])
def test_embedded_images(load, size, counts):
    train, test = load()
    for part, n in ((train, counts[0]), (test, counts[1])):
        assert part.images.shape == (n, 1, size, size) and part.images.dtype == torch.float32
        assert part.labels.shape == (n,) and part.labels.dtype == torch.int64
        assert part.images.min() == 0 and part.images.max() == 1
        assert part.classes == list("0123456789")
        assert part.labels.bincount(minlength=10).min() > n / 20  # every class is there
    assert not {x.numpy().tobytes() for x in test.images} & {x.numpy().tobytes() for x in train.images}
    again, other = load(), load(seed=1)
    assert torch.equal(again[0].images, train.images) and not torch.equal(other[0].labels, train.labels)


def test_no_embedded_image_is_lost():
    for load, counts in ((mnist5k, [500] * 10), (digits8, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])):
        assert torch.cat([part.labels for part in load()]).bincount().tolist() == counts


def test_more_cannot_be_held_out_than_there_are():
    with pytest.raises(ValueError, match="cannot hold out 1798 of 1797 images"):
        digits8(held_out=1798)


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def mnist(tmp_path):
    """A folder in the format of MNIST: six training images, plain; four test images, compressed."""
    rng = np.random.default_rng(0)
    for split, n in (("train", 6), ("t10k", 4)):
        images = rng.integers(256, size=(n, 5, 7), dtype=np.uint8)
        images[0, 0, :2] = 0, 255
        for name, values in (("images-idx3", images), ("labels-idx1", np.arange(n, dtype=np.uint8))):
            path = tmp_path / f"{split}-{name}-ubyte"
            if split == "train":
                path.write_bytes(idx(values))
            else:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(idx(values)))
    return tmp_path


def test_idx_files_are_read_plain_and_compressed(mnist):
    train, test = read_idx(mnist)
    assert train.images.shape == (6, 1, 5, 7) and test.images.shape == (4, 1, 5, 7)
    assert train.images.dtype == torch.float32 and train.images[0, 0, 0, :2].tolist() == [0, 1]
    assert train.labels.tolist() == [0, 1, 2, 3, 4, 5] and train.labels.dtype == torch.int64
    assert train.classes[3] == "3"
    raw = np.frombuffer((mnist / "train-images-idx3-ubyte").read_bytes()[16:], np.uint8).reshape(6, 1, 5, 7)
    assert torch.equal((train.images * 255).round(), torch.tensor(raw).float())


def test_the_folder_tells_clothes_from_digits(mnist, tmp_path):
    (tmp_path / "Fashion-MNIST").symlink_to(mnist, target_is_directory=True)
    fashion = tmp_path / "my-fashion"
    fashion.mkdir()
    for path in mnist.iterdir():
        if path.is_file():
            (fashion / path.name).write_bytes(path.read_bytes())
    assert read_idx(fashion)[0].classes[9] == "ankle boot"
    assert read_idx(mnist, classes=["a"] * 10)[1].classes[9] == "a"


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("train-images-idx3-ubyte", lambda b: b[:-1], "is cut: its header promises 6 x 5 x 7 = 210 values, it has 209"),
        ("train-images-idx3-ubyte", lambda b: b + b"x", "is too long: .* it has 211"),
        ("train-images-idx3-ubyte", lambda b: b[:9], "ends inside its header"),
        ("train-images-idx3-ubyte", lambda b: b"", "not an idx file of images: it begins with nothing"),
        ("train-images-idx3-ubyte", lambda b: b"<htm" + b[4:], "not an idx file of images: it begins with 3c68746d"),
        ("train-labels-idx1-ubyte", lambda b: b"\0\0\x08\x03" + b[4:], "not an idx file of labels"),
        ("train-labels-idx1-ubyte", lambda b: idx(np.zeros(5, np.uint8)), "has 6 images, but .* 5 labels"),
        ("train-labels-idx1-ubyte", lambda b: b[:-1] + b"\x0a", "has the label 10, but there are 10 classes"),
        ("t10k-images-idx3-ubyte.gz", lambda b: b[:-9], "is cut or damaged"),
        ("t10k-images-idx3-ubyte.gz", lambda b: b[:40] + b"\xff\0\xff" + b[43:], "is cut or damaged"),
        ("t10k-images-idx3-ubyte.gz", lambda b: gzip.decompress(b), "is cut or damaged"),
    ],
)
def test_broken_idx_files_are_explained(mnist, file, change, message):
    path = mnist / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        read_idx(mnist)


def test_a_header_that_promises_too_much_is_explained(mnist):
    path = mnist / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:4] + b"\xff" * 12 + b"few")
    with pytest.raises(DataError, match="is cut: its header promises 4294967295 x"):
        read_idx(mnist)


def test_missing_idx_files_are_named(mnist):
    (mnist / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="no file t10k-labels-idx1-ubyte"):
        read_idx(mnist)
    with pytest.raises(DataError, match="is not a folder: give the folder that holds the four idx files"):
        read_idx(mnist / "nowhere")


@pytest.fixture
def batches():
    """The six files of CIFAR-10's binary version with three images each."""
    rng = np.random.default_rng(1)
    files = {}
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        records = rng.integers(256, size=(3, RECORD), dtype=np.uint8)
        records[:, 0] = 9, 0, 4
        files[name] = records.tobytes()
    return files


def tar_gz(files: dict[str, bytes], prefix: str = "cifar-10-batches-bin/") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_cifar_is_read_from_its_folder_or_archive(tmp_path, batches):
    inner = write(tmp_path / "cifar-10-batches-bin", batches)
    other = tmp_path / "other"
    other.mkdir()
    archive = other / "cifar-10-binary.tar.gz"
    archive.write_bytes(tar_gz(batches))
    for place in (inner, tmp_path, archive, other):
        train, test = cifar10(place, per_file=3)
        assert train.images.shape == (15, 3, 32, 32) and test.images.shape == (3, 3, 32, 32)
        assert train.labels.tolist() == [9, 0, 4] * 5 and test.labels.dtype == torch.int64
        assert test.classes[9] == "truck" and train.images.dtype == torch.float32
        second = batches["data_batch_2.bin"][RECORD:]  # its second image: label, then red, green, blue
        blue = train.images[4, 2, 31, 30] * 255
        assert round(blue.item()) == second[1 + 2 * 1024 + 31 * 32 + 30]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[:-1], r"data_batch_3.bin is cut: 3 images of 3073 bytes are 9219 bytes, it has 9218"),
        (lambda b: b[:-RECORD], "data_batch_3.bin is cut"),  # a whole image is missing
        (lambda b: b + b"x", "data_batch_3.bin is too long"),
        (lambda b: b"", "data_batch_3.bin is cut"),
        (lambda b: b[:RECORD] + b"\x0a" + b[RECORD + 1 :], "damaged: image 1 has the label 10"),
        (None, "no (file )?data_batch_3.bin"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_broken_cifar_files_are_explained(tmp_path, batches, change, message, packed):
    name = "data_batch_3.bin"
    content = batches.pop(name)
    if change is not None:
        batches[name] = change(content)
    if packed:
        place = tmp_path / "mine.tar.gz"
        place.write_bytes(tar_gz(batches))
    else:
        place = write(tmp_path / "mine", batches)
    with pytest.raises(DataError, match=message):
        cifar10(place, per_file=3)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b[:200] + b"\0" * 50 + b[250:],
        lambda b: b"no tar",
        lambda b: gzip.compress(b"no tar" * 200),
    ],
)
def test_a_broken_cifar_archive_is_explained(tmp_path, batches, change):
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(change(tar_gz(batches)))
    with pytest.raises(DataError, match="(cut or damaged|not a whole archive) .*: fetch it again"):
        cifar10(path, per_file=3)


def test_names_and_links_in_an_archive_do_no_harm(tmp_path, batches):
    buffer = io.BytesIO(tar_gz(batches, prefix="../../"))
    path = tmp_path / "inner" / "mine.tar.gz"
    path.parent.mkdir()
    path.write_bytes(buffer.getvalue())
    before = sorted(tmp_path.rglob("*"))
    assert len(cifar10(path, per_file=3)[1].labels) == 3
    assert sorted(tmp_path.rglob("*")) == before
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("data_batch_1.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    with pytest.raises(DataError, match="has no data_batch_1.bin"):
        cifar10(path, per_file=3)


def test_the_python_version_of_cifar_is_declined(tmp_path):
    write(tmp_path / "py", {"data_batch_1": b"\x80\x02"})
    with pytest.raises(DataError, match="python version .* take the binary version"):
        cifar10(tmp_path / "py")
