"""Write generated files so that an interrupted build leaves the old ones whole, and tell which are stale."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

Files = dict[Path, bytes]  # where -> what

SUFFIX = ".new"


def stale(files: Files, folders: list[Path]) -> list[Path]:
    """The files whose content on disk differs, that are missing, or that nothing generates any more."""
    different = [path for path, content in files.items() if not path.is_file() or path.read_bytes() != content]
    return sorted(different + _leftovers(files, folders))


def write(files: Files, folders: list[Path], sync: bool = True) -> list[Path]:
    """Bring the folders to exactly these files; returns what changed.

    Everything is first written beside its target, so that a full disk or a kill happens before anything is replaced.
    Without `sync` nobody waits for the disk: for what can be computed again.
    """
    changed = stale(files, folders)
    wanted = [path for path in changed if path in files]
    try:
        for path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(_beside(path), "wb") as file:
                file.write(files[path])
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
        for path in wanted:
            os.replace(_beside(path), path)
    finally:
        for path in wanted:
            with contextlib.suppress(FileNotFoundError):
                _beside(path).unlink()
    for path in set(changed) - set(wanted):
        path.unlink()
    return changed


def _beside(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _leftovers(files: Files, folders: list[Path]) -> list[Path]:
    there = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    ignored = (".ipynb_checkpoints", "__pycache__")
    return [path for path in there if path not in files and not set(path.parts) & set(ignored)]
