"""A zip with everything that a zip should not hold, and two honest notebooks."""

import stat
import struct
import zipfile
from pathlib import Path


def make(kit, place: Path):
    source = place / "class.zip"
    honest = kit.honest()
    token = kit.places["@TOKEN@"]
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("alice/hw9_target.ipynb", honest)
        archive.writestr("bob/hw9_target.ipynb", honest)
        for name in (f"../../{token}.ipynb", f"/tmp/{token}.ipynb", f"eve/../../{token}.ipynb", f"..\\{token}.ipynb"):
            archive.writestr(name, honest)
        link = zipfile.ZipInfo("mallory/hw9_target.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "../alice/hw9_target.ipynb")
        archive.writestr("bomber/hw9_target.ipynb", b'{"cells": [' + b" " * (64 * 2**20))
        archive.writestr("nested/hw9_target.ipynb", b"PK\x05\x06" + bytes(18))
        archive.writestr("empty/hw9_target.ipynb", b"")
        archive.writestr("liar/hw9_target.ipynb", honest)
    data = bytearray(source.read_bytes())
    at = data.rfind(b"liar/hw9_target.ipynb")  # in the central directory: claim another checksum
    struct.pack_into("<I", data, at - 46 + 16, 0xDEADBEEF)
    source.write_bytes(data)
    return source
