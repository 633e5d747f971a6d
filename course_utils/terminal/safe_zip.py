"""Read a zip that came from anywhere: nothing in it may lead out of it, be a link, or unfold without end."""

from __future__ import annotations

import io
import lzma
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from course_utils.terminal.refusals import Refusal

MAX_ENTRIES = 2_000
MAX_TOTAL = 64 * 2**20  # bytes of all files together
TROUBLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError, EOFError, ValueError)


def read_zip(source: Path | bytes, shown: str) -> dict[str, bytes]:
    """The files of a zip, path inside it -> content; raises `Refusal` for one that is not to be trusted."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            members = [member for member in archive.infolist() if not _of_the_system(member.filename)]
            _refuse_the_hostile(members, shown)
            files, left = {}, MAX_TOTAL
            for member in members:
                if not member.is_dir():
                    with archive.open(member) as file:
                        files[member.filename] = file.read(left + 1)
                    left -= len(files[member.filename])
                    if left < 0:  # its list of contents has lied
                        raise Refusal(_too_large(shown))
            return files
    except TROUBLE as error:
        raise Refusal(f"{shown} is not a zip that can be read ({error}). Download it again.") from None


def _refuse_the_hostile(members: list[zipfile.ZipInfo], shown: str) -> None:
    if len(members) > MAX_ENTRIES:
        raise Refusal(f"{shown} has {len(members)} entries, and a homework has fewer than {MAX_ENTRIES}.")
    if sum(member.file_size for member in members) > MAX_TOTAL:
        raise Refusal(_too_large(shown))
    seen: set[str] = set()
    for member in members:
        path = PurePosixPath(member.filename)
        out = path.is_absolute() or ".." in path.parts or any(c in member.filename for c in "\\:\0")
        kind = stat.S_IFMT(member.external_attr >> 16)
        if out or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Refusal(
                f"{shown} holds {member.filename!r}, a link or a path out of its folder: nothing is unpacked."
            )
        if not member.is_dir():
            folded = str(path).casefold()  # two names that one disk would take for the same
            if folded in seen:
                raise Refusal(f"{shown} holds {member.filename!r} twice: nothing is unpacked.")
            seen.add(folded)
    for name in seen:
        if seen & {str(parent) for parent in PurePosixPath(name).parents}:
            raise Refusal(f"{shown} holds {name!r} below a file: nothing is unpacked.")


def _of_the_system(name: str) -> bool:
    """What macOS adds to the zips that it makes."""
    return name.startswith("__MACOSX/") or name.endswith("/.DS_Store")


def _too_large(shown: str) -> str:
    return f"{shown} unpacks to more than {MAX_TOTAL // 2**20} MB: that is no homework of the course."
