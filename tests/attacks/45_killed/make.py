"""A class of eight, graded by runs that are killed."""

from pathlib import Path

WRONG = "def describe(values):\n    return {'count': len(values), 'mean': sum(values), 'trend': 'flat'}"


def make(kit, place: Path):
    source = place / "submissions"
    source.mkdir()
    for number in range(8):
        cells = kit.cells() if number % 2 else [*kit.cells(["q9_1", "q9_2", "q9_3"]), kit.cell(WRONG, "q9_4")]
        (source / f"student{number}.ipynb").write_bytes(kit.notebook([*cells, kit.cell(f"print({number})")]))
    (source / "torn.ipynb").write_text('{"cells": [')
    return source
