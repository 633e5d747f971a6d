"""Find the student's notebook of a homework: here, or in a folder below."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course_utils.terminal.notebook_file import HOMEWORK, Notebook, read_notebook
from course_utils.terminal.originals import Original, is_called, original_of, originals
from course_utils.terminal.refusals import Refusal


@dataclass(frozen=True, eq=False)
class Work:
    """A notebook that a student works in, and what the course handed out."""

    path: Path
    homework: str

    @property
    def folder(self) -> Path:
        """Where the notebook lies, with its `tests` beside it."""
        return self.path.parent

    @cached_property
    def notebook(self) -> Notebook:
        """The notebook as it is now; raises `Refusal` where it cannot be read."""
        return read_notebook(self.path)

    @cached_property
    def original(self) -> Original:
        """The homework as it was handed out."""
        return original_of(self.homework, self.folder)


def find_work(wanted: str, here: Path) -> Work:
    """The one notebook that `hw1`, `hw1_attention`, a folder or a notebook's path means; raises `Refusal`."""
    path = here / wanted
    if path.suffix == ".ipynb":
        if not path.is_file():
            raise Refusal(f"There is no notebook {path}.")
        if homework := _homework(path):
            return Work(path, homework)
        raise Refusal(f"{path} is a notebook, but of no homework of the course.")
    found = _in_folder(path) if path.is_dir() else []
    found = found or [work for work in find_all(here) if is_called(work.homework, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        names = [str(work.path) for work in found]
        raise Refusal(
            f"{wanted} may be one of {len(found)} notebooks: {', '.join(names)}. Say which one you mean by its path, "
            f"as in `course check {shlex.quote(names[0])}`."
        )
    raise Refusal(_nothing(wanted, here))


def find_all(here: Path) -> list[Work]:
    """Every notebook of the course in this folder, and of homeworks that are not in it those one folder below."""
    found = _in_folder(here)
    have = {work.homework for work in found}
    for folder in sorted(path for path in here.iterdir() if path.is_dir() and not path.name.startswith(".")):
        if folder.name != "course_utils":
            found += [work for work in _in_folder(folder) if work.homework not in have]
    return sorted(found, key=lambda work: (work.homework, str(work.path)))


def _in_folder(folder: Path) -> list[Work]:
    try:
        files = sorted(path for path in folder.glob("*.ipynb") if path.is_file())
    except OSError:  # a folder that may not be looked into
        return []
    return [Work(path, homework) for path in files if (homework := _homework(path))]


def _homework(path: Path) -> str:
    """The homework that a notebook is of: as it says itself, else by its file's name; "" for any other notebook."""
    try:
        told = read_notebook(path).homework
    except Refusal:  # told when it is used
        told = ""
    named = HOMEWORK.match(path.stem)
    return told or (named[0] if named else "")


def _nothing(wanted: str, here: Path) -> str:
    known = originals(here)
    startable = [name for name in known if is_called(name, wanted)]
    if startable:
        return (
            f"There is no notebook of {startable[0]} in {here.resolve()} or in a folder in it. Go where it is, or get "
            f"a fresh copy with `course start {wanted}`."
        )
    present = sorted({work.homework for work in find_all(here)})
    return (
        f"There is no homework {wanted!r} in {here.resolve()}. Notebooks here: {', '.join(present) or 'none'}; "
        f"can be started: {', '.join(known) or 'none'}."
    )
