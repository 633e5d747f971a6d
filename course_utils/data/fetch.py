"""Files from the network: fetched once, continued where they were cut, and checked."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

from course_utils.notebook.bars import progress_of_bytes

BLOCK = 1 << 16

# Where larger sets can be had: the address of the folder, and the SHA-256 of each file.
SETS = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    "fashion-mnist": (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    ),
    "cifar10": (
        "https://www.cs.toronto.edu/~kriz",
        {"cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
    ),
    "multi30k": (
        "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
        {
            "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
            "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
            "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
            "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
            "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
            "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        },
    ),
}


class DownloadError(OSError):
    """The file could not be had; the message says why and what to do instead."""


def download(url: str, path: str | Path, sha256: str, *, attempts: int = 3, timeout: float = 30.0) -> Path:
    """Fetch `url` to `path` and return the path. The file appears only when it is whole and its SHA-256 is right.

    A right file that is already there is not fetched again. What a cut connection left stays in `path`.part, and
    the next attempt, or the next call, continues from there.
    """
    path = Path(path)
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"download needs an address with https:// or http://, not {url!r}")
    if path.is_file() and digest(path) == sha256.lower():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    fault = "no attempt was made"
    for _ in range(attempts):
        try:
            continued = _fetch(url, part, timeout)
        except urllib.error.HTTPError as error:
            raise DownloadError(
                _advice(f"the server answered {error.code} {error.reason}", url, path, sha256)
            ) from None
        except (OSError, http.client.HTTPException) as error:  # no network, no such host, cut on the way
            fault = str(getattr(error, "reason", error)) or type(error).__name__
            continue
        found = digest(part)
        if found == sha256.lower():
            os.replace(part, path)
            return path
        part.unlink()
        fault = f"what came has the SHA-256 {found}"
        if not continued:
            break  # the same would come again
    raise DownloadError(_advice(fault, url, path, sha256))


def download_set(name: str, folder: str | Path, address: str | None = None) -> Path:
    """Fetch the files of "mnist", "fashion-mnist", "cifar10" or "multi30k" to `folder`/`name` and return that folder.

    `read_idx`, `cifar10` and `multi30k` read it. Hosts of such sets come and go: `address` is another one with the same
    files.
    """
    if name not in SETS:
        raise ValueError(f"download_set knows {', '.join(SETS)}, not {name!r}")
    usual, files = SETS[name]
    for file, sha256 in files.items():
        download(f"{address or usual}/{file}", Path(folder) / name / file, sha256)
    return Path(folder) / name


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch(url: str, part: Path, timeout: float) -> bool:
    """Fetch what `part` still lacks, or all of it where the server cannot continue; was it continued?"""
    start = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing lies behind what we have: it is whole, or wrong
            error.close()
            return True
        raise
    with response:
        if response.status != 206 or not str(response.headers.get("Content-Range", "")).startswith(f"bytes {start}-"):
            start = 0  # this server sends everything
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with part.open("ab" if start else "wb") as out, progress_of_bytes(start, total, part.stem) as bar:
            while block := response.read(BLOCK):
                out.write(block)
                bar.update(len(block))
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f"the connection ended after {part.stat().st_size} of {total} bytes")
    return start > 0


def _advice(fault: str, url: str, path: Path, sha256: str) -> str:
    return (
        f"{url} could not be fetched: {fault}. Try again later; or get the file another way and put it at {path} "
        f"(its SHA-256 is {sha256}); or give the loader a folder that has the data."
    )
