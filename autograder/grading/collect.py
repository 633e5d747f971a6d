"""Find the submissions: a folder, a zip (of zips), an nbgrader course, a Gradescope or a Canvas export."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml

from autograder.errors import BadInput
from autograder.submission import MAX_BYTES

MAX_ENTRIES = 20_000
MAX_TOTAL = 4 * 2**30
SUFFIXES = (".ipynb", ".py")
CHECKPOINT = ".safetensors"
MAX_CHECKPOINTS = 48 * 2**20  # bytes of all checkpoints of one submission
GRADESCOPE = "submission_metadata.yml"
NBGRADER, SUBMITTED = "nbgrader_config.py", "submitted"  # a course of nbgrader's has both
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<user>\d+)_(?P<submission>\d+)_(?P<file>.+)")
UNSAFE = re.compile(r"[^\w.@+-]+")
NOWHERE = PurePosixPath()
TOO_LARGE = f"The file is larger than {MAX_BYTES // 2**20} MB."
ARCHIVE_TROUBLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    OSError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
)


@dataclass(frozen=True)
class Entry:
    """One student's file, or what kept it from being found or read."""

    student: str
    path: str  # as shown to staff
    content: bytes | None
    problem: str = ""
    checkpoints: dict[str, bytes] = field(default_factory=dict)  # name -> content of the safetensors files beside it
    notes: tuple[str, ...] = ()  # what the student is told about the files

    @property
    def suffix(self) -> str:
        """The kind of file."""
        return PurePosixPath(self.path).suffix

    def files_for(self, homework: str) -> tuple[tuple[str, bytes], ...]:
        """The checkpoints as they stand beside the notebook in the box: a single one bears the homework's name."""
        if len(self.checkpoints) == 1:
            return tuple((f"{homework}{CHECKPOINT}", data) for data in self.checkpoints.values())
        return tuple(sorted(self.checkpoints.items()))


def collect(source: Path, homework: str) -> list[Entry]:
    """Every submission in `source`, one per student, sorted by student; raises `BadInput` when there is none."""
    if not source.exists():
        raise BadInput(f"There is nothing at {source}. Give a folder, a zip, or one notebook.")
    if source.is_file() and source.suffix in SUFFIXES:
        return [_entry(_File(PurePosixPath(source.name), source), _safe(source.stem), _beside(source))]
    files = list(_zip_files(source) if source.is_file() else _folder_files(source))
    files = [inner for file in files for inner in _opened(file)]
    entries = _by_student(_layout(files, homework), homework, files)
    if not entries:
        raise BadInput(
            f"No submission of {homework} in {source}. Expected <student>.ipynb, <student>/{homework}.ipynb, "
            f"nbgrader's submitted/<student>/{homework}/, or a Gradescope or Canvas export."
        )
    return entries


class _Unreadable(Exception):
    """A file that cannot be read; the text says why."""


@dataclass(frozen=True)
class _File:
    """A file of the source, by its path inside; read only when it turns out to be of use."""

    inside: PurePosixPath
    source: Path | _File  # a file, or the zip that has it as `member`
    member: zipfile.ZipInfo | None = None

    def read(self) -> bytes:
        """Its content; raises `_Unreadable`."""
        try:
            if self.member is None:
                content = self._plain()
            elif self.member.file_size > MAX_BYTES:
                raise _Unreadable(TOO_LARGE)
            else:
                with _archive(self.source) as archive, archive.open(self.member) as file:
                    content = file.read(MAX_BYTES + 1)
        except ARCHIVE_TROUBLE as error:
            raise _Unreadable(f"The file cannot be read ({type(error).__name__}).") from None
        if len(content) > MAX_BYTES:
            raise _Unreadable(TOO_LARGE)
        return content

    def _plain(self) -> bytes:
        assert isinstance(self.source, Path)
        if self.source.is_symlink() or not self.source.is_file():
            raise _Unreadable("Not a regular file.")
        with open(self.source, "rb") as file:
            return file.read(MAX_BYTES + 1)


def _entry(file: _File, student: str, checkpoints: list[_File]) -> Entry:
    """The student's file with the checkpoints that came with it."""
    shown = str(file.inside)
    try:
        content = file.read()
    except _Unreadable as problem:
        return Entry(student, shown, None, str(problem))
    kept: dict[str, bytes] = {}
    notes = []
    for checkpoint in checkpoints:
        try:
            data = checkpoint.read()
            if sum(map(len, kept.values())) + len(data) > MAX_CHECKPOINTS:
                raise _Unreadable(f"Checkpoints may have {MAX_CHECKPOINTS // 2**20} MB together.")
            kept[checkpoint.inside.name] = data
        except _Unreadable as problem:
            notes.append(f"{checkpoint.inside.name} was left out: {problem}")
    return Entry(student, shown, content, "", kept, tuple(notes))


def _folder_files(folder: Path) -> Iterator[_File]:
    if not any(folder.iterdir()):
        raise BadInput(f"The folder {folder} is empty.")
    of_a_course = folder.name == SUBMITTED and (folder.absolute().parent / NBGRADER).is_file()
    base = folder.parent if of_a_course else folder  # its name tells the layout, other assignments too
    paths = (path for path in sorted(folder.rglob("*")) if not path.is_symlink() and path.is_file())
    return (_File(PurePosixPath(path.relative_to(base).as_posix()), path) for path in paths)


def _archive(source: Path | _File) -> zipfile.ZipFile:
    return zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source.read()))


def _zip_files(source: Path | _File, below: PurePosixPath = NOWHERE) -> Iterator[_File]:
    """The files of a zip; nothing is unpacked to disk, so no path or link in it can point anywhere."""
    shown = source if isinstance(source, Path) else source.inside
    try:
        with _archive(source) as opened:
            members = opened.infolist()
    except ARCHIVE_TROUBLE as error:
        raise BadInput(f"{shown} is neither a folder, a notebook nor a readable zip ({error}).") from None
    if len(members) > MAX_ENTRIES:
        raise BadInput(f"{shown} has {len(members)} entries; at most {MAX_ENTRIES} are read.")
    if sum(member.file_size for member in members) > MAX_TOTAL:
        raise BadInput(f"{shown} unpacks to more than {MAX_TOTAL // 2**30} GB.")
    for member in members:
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        link = stat.S_ISLNK(member.external_attr >> 16)
        if not (member.is_dir() or link or inside.is_absolute() or ".." in inside.parts):
            yield _File(below / inside, source, member)


def _opened(file: _File) -> Iterator[_File]:
    """The file itself, or for a student's zip what is in it, as if it were a folder of that name."""
    if file.inside.suffix.lower() != ".zip":
        yield file
        return
    try:
        yield from list(_zip_files(file, file.inside.with_suffix("")))
    except (_Unreadable, BadInput):
        yield file  # the student is told that it cannot be read


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
        if file.inside.suffix not in SUFFIXES and not (file.inside.suffix.lower() == ".zip" and file.member is None):
            continue
        if SUBMITTED in parts[:-2]:
            student, *rest = parts[parts.index(SUBMITTED) + 1 :]
            if rest and rest[0] == homework:
                yield student, file
        elif homework in parts[:-1] and parts.index(homework) > 0:
            yield _canvas(parts[parts.index(homework) - 1]), file
        elif CANVAS.fullmatch(parts[-1]):
            yield _canvas(parts[-1]), file
        elif file.inside.stem == homework and len(parts) > 1:
            yield _canvas(parts[-2]), file
        elif file.inside.suffix != ".py" or len(parts) == 1:
            yield (file.inside.stem if len(parts) == 1 or parts[-2] == homework else _canvas(parts[-2])), file


def _canvas(name: str) -> str:
    """The student of a name that Canvas gave to a file; any other name as it is."""
    matched = CANVAS.fullmatch(name)
    return f"{matched['name']}_{matched['user']}" if matched else name


def _gradescope(files: list[_File], metadata: _File) -> Iterator[tuple[str, _File]]:
    try:
        told = yaml.safe_load(_text(metadata)) or {}
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


def _text(file: _File) -> str:
    try:
        return file.read().decode("utf-8", "replace")
    except _Unreadable as problem:
        raise BadInput(f"{file.inside}: {problem}") from None


def _by_student(found: Iterator[tuple[str, _File]], homework: str, files: list[_File]) -> list[Entry]:
    """One file per student: the one named after the homework, notebooks before scripts, else the last by name."""
    chosen: dict[str, list[_File]] = {}
    for student, file in found:
        chosen.setdefault(_safe(student), []).append(file)

    def rank(file: _File) -> tuple[bool, bool, str]:
        return homework in file.inside.stem, file.inside.suffix == ".ipynb", str(file.inside)

    best = {student: max(candidates, key=rank) for student, candidates in sorted(chosen.items())}
    shared = Counter(file.inside.parent for file in best.values())  # a folder of many students' notebooks
    checkpoints = [file for file in files if file.inside.suffix == CHECKPOINT]
    return [
        _entry(
            file,
            student,
            [c for c in checkpoints if c.inside.parent == file.inside.parent and _belongs(c, file, shared)],
        )
        for student, file in best.items()
    ]


def _belongs(checkpoint: _File, file: _File, shared: Counter[PurePosixPath]) -> bool:
    """Whether a checkpoint in the same folder is this student's: in a shared folder it bears the notebook's name."""
    alone = shared[file.inside.parent] == 1
    return alone or checkpoint.inside.name.startswith(f"{file.inside.stem}.")


def _beside(source: Path) -> list[_File]:
    """The checkpoints beside a single notebook, by its name."""
    found = sorted(source.parent.glob(f"*{CHECKPOINT}"))
    return [_File(PurePosixPath(path.name), path) for path in found if path.name.startswith(f"{source.stem}.")]


def _safe(student: str) -> str:
    """The student's id with nothing in it that means something to a file system or a page; still one per student."""
    safe = UNSAFE.sub("_", student).strip(".+-@")[:50] or "unnamed"
    return safe if safe == student else f"{safe}-{hashlib.sha256(student.encode(errors='replace')).hexdigest()[:6]}"
