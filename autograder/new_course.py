"""`autograder new course`: a small course that runs, made from the example, to be filled with one's own homeworks."""

from __future__ import annotations

import re
from pathlib import Path

from autograder.course import FILE, read_course
from autograder.errors import BadInput
from autograder.places import REPOSITORY
from autograder.write import Files, write

EXAMPLE = REPOSITORY / "examples" / "numpy_course"
GENERATED = {"assignments", "build", "results", "proved.json", "__pycache__", ".ipynb_checkpoints"}


def new_course(folder: Path) -> list[Path]:
    """Write the example's sources into a new or empty folder, under the folder's name; returns the files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already, and not empty. Name a new folder.")
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    if not name or not name[0].isalpha():
        raise BadInput(f"{folder} cannot be the name of a course. Begin the folder's name with a letter.")
    title = name.replace("-", " ").capitalize()
    example = read_course(EXAMPLE / FILE, EXAMPLE)
    files: Files = {}
    for path in sorted(EXAMPLE.rglob("*")):
        inside = path.relative_to(EXAMPLE)
        if path.is_file() and not GENERATED & set(inside.parts):
            files[folder / inside] = path.read_bytes()
    for place, old, new in (
        (FILE, f'name = "{example.name}"', f'name = "{name}"'),
        (FILE, f'title = "{example.title}"', f'title = "{title}"'),
        ("README.md", f"# {example.title}", f"# {title}"),
    ):
        files[folder / place] = files[folder / place].replace(old.encode(), new.encode())
    return write(files, [])
