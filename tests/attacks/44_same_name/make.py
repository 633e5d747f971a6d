"""Students whose names differ only in letters that a file system or a page may not like."""

from pathlib import Path


def make(kit, place: Path):
    source = place / "submissions"
    source.mkdir()
    wrong = kit.notebook([kit.cell("x = 1")])
    for name, content in {
        "Zo\u00eb.ipynb": kit.honest(),
        "Zo\u00e9.ipynb": wrong,
        "=1+1.ipynb": wrong,
        "<script>alert(1)<.ipynb": wrong,
        "..ipynb": wrong,
    }.items():
        (source / name).write_bytes(content)
    return source
