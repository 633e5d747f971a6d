"""A zip in which one student's compressed bytes are damaged."""

import zipfile
from pathlib import Path


def make(kit, place: Path):
    source = place / "class.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("alice/hw9_target.ipynb", kit.honest())
        archive.writestr("bob/hw9_target.ipynb", kit.honest())
    data = bytearray(source.read_bytes())
    start = data.rfind(b"PK\x03\x04") + 30 + len("bob/hw9_target.ipynb")
    data[start : start + 40] = b"\xff" * 40
    source.write_bytes(data)
    return source
