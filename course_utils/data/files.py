"""Reading files that may be compressed, cut or of another kind, with errors that say which file and what is wrong."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)  # what a cut or damaged .gz raises


class DataError(ValueError):
    """A data file that is missing, cut, damaged or of another kind; the message says which and what to do."""


def find(folder: Path, names: Sequence[str], what: str) -> Path:
    """The first of these names in the folder, plain or with .gz."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder: give the folder that holds {what}")
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise DataError(f"{folder} has no file {' or '.join(names)} (plain or .gz): give the folder that holds {what}")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, decompressed if the name says so."""
    try:
        with cast(BinaryIO, gzip.open(path)) if path.suffix in (".gz", ".tgz") else path.open("rb") as stream:
            yield stream
    except BROKEN as error:
        raise DataError(f"{path} is cut or damaged ({error}): fetch it again") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
