"""`course start`: a fresh copy of a homework, never over work that is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from course_utils.terminal.find_work import Work, find_all
from course_utils.terminal.notebook_file import CHECK, Notebook
from course_utils.terminal.originals import Original, named
from course_utils.terminal.refusals import Refusal


@dataclass(frozen=True)
class Started:
    """What became of a start: the homework's folder, what was written there, and how a copy of before stands."""

    homework: str
    notebook: Path
    written: list[str]
    edited: list[str] = field(default_factory=list)  # what is no longer as it was handed out
    fresh: bool = True  # False where a copy was there before

    def __str__(self) -> str:
        if self.fresh:
            return f"{self.homework} is in {self.notebook.parent}. Open it with: jupyter lab {self.notebook}"
        if self.edited:
            return (
                f"{self.notebook} is already there, and edited ({'; '.join(self.edited)}). It stays as it is. For a "
                f"fresh copy beside it: course start {self.homework} --again"
            )
        mended = f" What was missing is back: {', '.join(self.written)}." if self.written else ""
        return f"{self.notebook} is already there, and untouched.{mended} Open it with: jupyter lab {self.notebook}"


def start(wanted: str, into: Path, again: bool = False) -> Started:
    """Unpack a fresh copy into a folder of the homework's name; `again` beside one that is there."""
    if into.exists() and not into.is_dir():
        raise Refusal(f"{into} is a file: name a folder with --to.")
    original = named(wanted, Path())
    there = [work for work in find_all(into) if work.homework == original.name] if into.is_dir() else []
    folder = into / original.name
    if again and (there or folder.exists()):
        folder = _free(folder)
    elif there:
        return _look(min(there, key=lambda work: len(str(work.path))), original)
    elif folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Refusal(f"{folder} is in the way: move it, or name another place with --to.")
    return Started(original.name, folder / f"{original.name}.ipynb", _unpack(original.files, folder))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or not there; raises `Refusal`."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        raise Refusal(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def differences(now: Notebook, original: Original) -> list[str]:
    """What is edited in a notebook, in words; outputs are no edit."""
    before = {cell.id: cell.source for cell in original.notebook.cells if cell.id}
    after = {cell.id: cell.source for cell in now.cells if cell.id}
    answers = [name for name in before if not name.startswith(CHECK) and after.get(name) != before[name]]
    told = [f"answers: {', '.join(answers)}"] if answers else []
    kept = [cell.source for cell in now.cells if cell.id not in answers]
    shipped = [cell.source for cell in original.notebook.cells if cell.id not in answers]
    return told if kept == shipped else [*told, "other cells"]


def _look(work: Work, original: Original) -> Started:
    """How a copy stands that is there already; checks that it lacks are brought back, nothing is replaced."""
    try:
        edited = differences(work.notebook, original)
    except Refusal:
        edited = ["it cannot be read as a notebook"]
    checks = {name: content for name, content in original.files.items() if name.startswith("tests/")}
    present = [work.folder / name for name in checks if (work.folder / name).is_file()]
    edited += [f"tests/{path.name}" for path in present if path.read_bytes() != checks[f"tests/{path.name}"]]
    return Started(original.name, work.path, _unpack(checks, work.folder), edited, fresh=False)


def _unpack(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Write the files that are not there, the notebook last: what was interrupted can be started again."""
    missing = [name for name in files if not os.path.lexists(folder / name)]
    for name in sorted(missing, key=lambda name: name.endswith(".ipynb")):
        write_whole(folder / name, files[name])
    return missing


def _free(folder: Path) -> Path:
    """The folder's name with the first number that is free."""
    names = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in names if not path.exists() and not path.is_symlink())
