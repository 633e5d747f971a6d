"""A Canvas export in which a student's zip, and a folder beside it, claim to hold other students' files."""

import zipfile
from pathlib import Path


def make(kit, place: Path):
    source = place / "export"
    source.mkdir()
    wrong = kit.notebook([kit.cell("x = 1")])
    for name in ("alice_111_900", "bob_333_901"):
        (source / f"{name}_hw9_target.ipynb").write_bytes(kit.honest())
    with zipfile.ZipFile(source / "mallory_222_902_hw9_target.zip", "w") as archive:
        for name in ("alice_111_999_hw9_target", "submitted/bob_333/hw9_target/hw9_target", "hw9_target"):
            archive.writestr(f"{name}.ipynb", wrong)
        archive.writestr("submission_metadata.yml", "x: [")
    forged = source / "eve" / "alice_111" / "hw9_target"
    forged.mkdir(parents=True)
    (forged / "zz_hw9_target.ipynb").write_bytes(wrong)
    (source / "eve" / "submission_metadata.yml").write_text("submission_1: {':submitters': [{':sid': alice_111}]}")
    with zipfile.ZipFile(source / "zoe_444_903_hw9_target.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(12):
            archive.writestr(f"p{number}_{number}_{number}_hw9_target.ipynb", b'{"cells": [' + b" " * (31 * 2**20))
    return source
