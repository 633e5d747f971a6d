"""Names that are short in letters and long in bytes: a file system counts bytes."""

import zipfile
from pathlib import Path


def make(kit, place: Path):
    source = place / "class.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("alice/hw9_target.ipynb", kit.honest())
        archive.writestr("\u5b57" * 100 + "/hw9_target.ipynb", kit.honest())
        archive.writestr("\U00010330" * 100 + "/hw9_target.ipynb", kit.honest())
    return source
