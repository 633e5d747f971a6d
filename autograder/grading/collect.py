"""Find the submissions: a folder, a zip, an nbgrader course, a Gradescope or a Canvas export."""

from __future__ import annotations

import hashlib
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from autograder.errors import BadInput
from autograder.submission import MAX_BYTES

MAX_ENTRIES = 20_000
MAX_TOTAL = 4 * 2**30
SUFFIXES = (".ipynb", ".py")
GRADESCOPE = "submission_metadata.yml"
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<user>\d+)_(?P<submission>\d+)_(?P<file>.+)")
UNSAFE = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True)
class Entry:
    """One student's file, or what kept it from being found or read."""

    student: str
    path: str  # as shown to staff
    content: bytes | None
    problem: str = ""

    @property
    def suffix(self) -> str:
        """The kind of file."""
        return PurePosixPath(self.path).suffix


def collect(source: Path, homework: str) -> list[Entry]:
    """Every submission in `source`, one per student, sorted by student; raises `BadInput` when there is none."""
    if not source.exists():
        raise BadInput(f"There is nothing at {source}. Give a folder, a zip, or one notebook.")
    if source.is_file() and source.suffix in SUFFIXES:
        return [_read_file(source, source.stem, source.name)]
    files = _zip_files(source) if source.is_file() else _folder_files(source)
    entries = _by_student(_layout(files, homework), homework)
    if not entries:
        raise BadInput(
            f"No submission of {homework} in {source}. Expected <student>.ipynb, <student>/{homework}.ipynb, "
            f"nbgrader's submitted/<student>/{homework}/, or a Gradescope or Canvas export."
        )
    return entries


@dataclass(frozen=True)
class _File:
    """A file of the source, by its path inside; read only when it turns out to be a submission."""

    inside: PurePosixPath
    source: Path
    member: zipfile.ZipInfo | None = None

    def entry(self, student: str) -> Entry:
        shown = str(self.inside)
        if self.member is None:
            return _read_file(self.source, student, shown)
        if self.member.file_size > MAX_BYTES:
            return Entry(student, shown, None, f"The file is larger than {MAX_BYTES // 2**20} MB.")
        try:
            with zipfile.ZipFile(self.source) as archive, archive.open(self.member) as file:
                content = file.read(MAX_BYTES + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            OSError,
            NotImplementedError,
            RuntimeError,
            EOFError,
            ValueError,
        ) as error:
            return Entry(student, shown, None, f"The file cannot be read from the archive ({type(error).__name__}).")
        if len(content) > MAX_BYTES:
            return Entry(student, shown, None, f"The file is larger than {MAX_BYTES // 2**20} MB.")
        return Entry(student, shown, content)

    def text(self) -> str:
        entry = self.entry("")
        return (entry.content or b"").decode("utf-8", "replace")


def _read_file(path: Path, student: str, shown: str) -> Entry:
    student = _safe(student)
    try:
        if path.is_symlink() or not path.is_file():
            return Entry(student, shown, None, "Not a regular file.")
        if path.stat().st_size > MAX_BYTES:
            return Entry(student, shown, None, f"The file is larger than {MAX_BYTES // 2**20} MB.")
        return Entry(student, shown, path.read_bytes())
    except OSError as error:
        return Entry(student, shown, None, f"The file cannot be read ({error.strerror}).")


def _folder_files(folder: Path) -> list[_File]:
    if not any(folder.iterdir()):
        raise BadInput(f"The folder {folder} is empty.")
    paths = (path for path in sorted(folder.rglob("*")) if not path.is_symlink() and path.is_file())
    return [_File(PurePosixPath(path.relative_to(folder).as_posix()), path) for path in paths]


def _zip_files(archive: Path) -> list[_File]:
    """The files of a zip; nothing is unpacked to disk, so no path or link in it can point anywhere."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise BadInput(f"{archive} is neither a folder, a notebook nor a readable zip ({error}).") from None
    if len(members) > MAX_ENTRIES:
        raise BadInput(f"{archive} has {len(members)} entries; at most {MAX_ENTRIES} are read.")
    if sum(member.file_size for member in members) > MAX_TOTAL:
        raise BadInput(f"{archive} unpacks to more than {MAX_TOTAL // 2**30} GB.")
    files = []
    for member in members:
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        link = stat.S_ISLNK(member.external_attr >> 16)
        if not (member.is_dir() or link or inside.is_absolute() or ".." in inside.parts):
            files.append(_File(inside, archive, member))
    return files


def _layout(files: list[_File], homework: str) -> Iterator[tuple[str, _File]]:
    """(student, file) of every file that may be a submission, by the layout they are in."""
    hidden = (".ipynb_checkpoints", "__MACOSX")
    files = [
        file for file in files if not set(hidden) & set(file.inside.parts) and not file.inside.name.startswith(".")
    ]
    metadata = next((file for file in files if file.inside.name == GRADESCOPE), None)
    if metadata is not None:
        yield from _gradescope(files, metadata)
        return
    for file in files:
        parts = file.inside.parts
        if file.inside.suffix not in SUFFIXES:
            continue
        if "submitted" in parts[:-2]:
            student, *rest = parts[parts.index("submitted") + 1 :]
            if rest and rest[0] == homework:
                yield student, file
        elif homework in parts[:-1] and parts.index(homework) > 0:
            yield parts[parts.index(homework) - 1], file
        elif matched := CANVAS.fullmatch(parts[-1]):
            yield f"{matched['name']}_{matched['user']}", file
        elif file.inside.stem == homework and len(parts) > 1:
            yield parts[-2], file
        elif file.inside.suffix == ".ipynb" or len(parts) == 1:
            yield (file.inside.stem if len(parts) == 1 or parts[-2] == homework else parts[-2]), file


def _gradescope(files: list[_File], metadata: _File) -> Iterator[tuple[str, _File]]:
    try:
        told = yaml.safe_load(metadata.text()) or {}
    except yaml.YAMLError:
        raise BadInput(f"{metadata.inside} is not valid YAML: export the submissions from Gradescope again.") from None
    for file in files:
        folder = next((part for part in file.inside.parts if part.startswith("submission_")), None)
        if folder is None or file.inside.suffix not in SUFFIXES or file is metadata:
            continue
        record = told.get(folder) if isinstance(told, dict) else None
        submitters = record.get(":submitters") if isinstance(record, dict) else None
        for person in submitters or [{}]:
            known = person if isinstance(person, dict) else {}
            yield str(known.get(":sid") or known.get(":email") or known.get(":name") or folder), file


def _by_student(found: Iterator[tuple[str, _File]], homework: str) -> list[Entry]:
    """One file per student: the one named after the homework, notebooks before scripts, else the last by name."""
    files: dict[str, list[_File]] = {}
    for student, file in found:
        files.setdefault(_safe(student), []).append(file)

    def rank(file: _File) -> tuple[bool, bool, str]:
        return homework in file.inside.stem, file.inside.suffix == ".ipynb", str(file.inside)

    return [max(files[student], key=rank).entry(student) for student in sorted(files)]


def _safe(student: str) -> str:
    """The student's id with nothing in it that means something to a file system or a page; still one per student."""
    safe = UNSAFE.sub("_", student).strip(".+-@")[:50] or "unnamed"
    return safe if safe == student else f"{safe}-{hashlib.sha256(student.encode(errors='replace')).hexdigest()[:6]}"
