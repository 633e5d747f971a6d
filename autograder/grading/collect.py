"""Find the submissions: a folder, a zip (of zips), an nbgrader course, a Gradescope or a Canvas export.

Whose a file is follows from where a platform or a teacher put it. What lies in a student's folder or zip is that
student's, whatever it is called.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml

from autograder.errors import BadInput
from autograder.submission import MAX_BYTES

MAX_ENTRIES = 20_000  # files of a class in a zip
MAX_TOTAL = 4 * 2**30  # bytes to which they unpack
MAX_STUDENT_ENTRIES = 5_000  # the same of one student, in all zips together
MAX_STUDENT_TOTAL = 256 * 2**20
SUFFIXES = (".ipynb", ".py")
CHECKPOINT = ".safetensors"
MAX_CHECKPOINTS = 48 * 2**20  # bytes of all checkpoints of one submission
MAX_CHECKPOINT_FILES = 20
GRADESCOPE, GRADESCOPE_FOLDER = "submission_metadata.yml", "submission_"  # beside it: a folder per submission
NBGRADER, SUBMITTED = "nbgrader_config.py", "submitted"  # a course of nbgrader's has both
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<user>\d+)_(?P<submission>\d+)_(?P<file>.+)", re.DOTALL)
UNSAFE = re.compile(r"[^\w.@+-]+")
HIDDEN = {".ipynb_checkpoints", "__MACOSX"}
DIRECTORY_RECORD = b"PK\x01\x02"  # stands before every entry in a zip's directory
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
    files = _visible(_class_zip(source) if source.is_file() else _folder_files(source))
    top = _class_folder(files, homework)
    entries = _entries(_by_student(_layout(files, top, homework), source), top, homework)
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


def _entry(file: _File, student: str, checkpoints: list[_File], notes: Iterable[str] = ()) -> Entry:
    """The student's file with the checkpoints that came with it."""
    shown = _printable(str(file.inside))
    try:
        content = file.read()
    except _Unreadable as problem:
        return Entry(student, shown, None, str(problem))
    kept: dict[str, bytes] = {}
    told = list(notes)
    for checkpoint in checkpoints[:MAX_CHECKPOINT_FILES]:
        name = _printable(checkpoint.inside.name)
        try:
            data = checkpoint.read()
            if sum(map(len, kept.values())) + len(data) > MAX_CHECKPOINTS:
                raise _Unreadable(f"Checkpoints may have {MAX_CHECKPOINTS // 2**20} MB together.")
            kept[name] = data
        except _Unreadable as problem:
            told.append(f"{name} was left out: {problem}")
    if len(checkpoints) > MAX_CHECKPOINT_FILES:
        told.append(f"{len(checkpoints)} checkpoints were handed in; the first {MAX_CHECKPOINT_FILES} are read.")
    return Entry(student, shown, content, "", kept, tuple(told))


def _folder_files(folder: Path) -> Iterator[_File]:
    if not any(folder.iterdir()):
        raise BadInput(f"The folder {folder} is empty.")
    of_a_course = folder.name == SUBMITTED and (folder.absolute().parent / NBGRADER).is_file()
    base = folder.parent if of_a_course else folder  # its name tells the layout, other assignments too
    paths = (path for path in sorted(folder.rglob("*")) if not path.is_symlink() and path.is_file())
    return (_File(PurePosixPath(path.relative_to(base).as_posix()), path) for path in paths)


def _visible(files: Iterable[_File]) -> list[_File]:
    """The files that people made: no checkpoints of Jupyter's, nothing of an operating system's."""
    return [file for file in files if not HIDDEN & set(file.inside.parts) and not file.inside.name.startswith(".")]


def _archive(source: Path | _File) -> zipfile.ZipFile:
    return zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source.read()))


def _class_zip(source: Path) -> list[_File]:
    try:
        with _archive(source) as opened:
            return list(_members(opened, source))
    except ARCHIVE_TROUBLE as error:
        raise BadInput(f"{source} is neither a folder, a notebook nor a readable zip ({error}).") from None


def _student_zip(zipped: _File) -> list[_File]:
    """What is in a student's zip, as if it were a folder of that name; raises `_Unreadable`."""
    raw = zipped.read()
    if raw.count(DIRECTORY_RECORD) > MAX_STUDENT_ENTRIES:  # before the directory is read, which costs memory
        raise _Unreadable(_too_many())
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as opened:
            return _visible(_members(opened, zipped, zipped.inside.with_suffix("")))
    except Exception:  # whatever a parser makes of untrusted bytes, the student gets a sentence
        raise _Unreadable("The file is no zip, or a damaged one.") from None


def _members(opened: zipfile.ZipFile, source: Path | _File, below: PurePosixPath = NOWHERE) -> Iterator[_File]:
    """The files of a zip; nothing is unpacked to disk, so no path or link in it can point anywhere."""
    for member in opened.infolist():
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        link = stat.S_ISLNK(member.external_attr >> 16)
        if inside.parts and not (member.is_dir() or link or inside.is_absolute() or ".." in inside.parts):
            yield _File(below / inside, source, member)


def _class_folder(files: list[_File], homework: str) -> PurePosixPath:
    """The folder that holds the class: the top, or the one folder around it all that a zip of a folder has."""
    found = [file.inside for file in files if file.inside.suffix.lower() in (*SUFFIXES, ".zip")]
    tops = {path.parts[0] for path in found}
    exported = any(file.inside == PurePosixPath(GRADESCOPE) for file in files)
    if len(tops) != 1 or exported or any(len(path.parts) == 1 or _of_nbgrader(path.parts) for path in found):
        return NOWHERE
    (name,) = tops
    top = PurePosixPath(name)
    inner = [path.relative_to(top) for path in found]
    folders = {path.parts[0] for path in inner if len(path.parts) > 1}
    loose = {path.name for path in inner if len(path.parts) == 1}
    if any(file.inside == top / GRADESCOPE for file in files):
        return top if not loose and all(folder.startswith(GRADESCOPE_FOLDER) for folder in folders) else NOWHERE
    if CANVAS.fullmatch(name) or any(PurePosixPath(one).stem == homework for one in loose):
        return NOWHERE  # a student's own
    if name == homework or SUBMITTED in folders or (loose and all(map(CANVAS.fullmatch, loose))):
        return top
    students = {path.parts[0] for path in inner if path.suffix != ".py" or path.stem == homework}
    return top if homework not in folders and len(students) > 1 else NOWHERE


def _layout(files: list[_File], top: PurePosixPath, homework: str) -> Iterator[tuple[str, _File]]:
    """(student, file) of every file; only names that a platform or a teacher gave tell whose it is."""
    paths = [(file.inside.relative_to(top).parts, file) for file in files if file.inside.is_relative_to(top)]
    metadata = next((file for parts, file in paths if parts == (GRADESCOPE,)), None)
    if metadata is not None:
        yield from _gradescope(paths, metadata)
    elif any(_of_nbgrader(parts) for parts, _ in paths):
        for parts, file in paths:
            if _of_nbgrader(parts) and parts[2] == homework:
                yield parts[1], file
    else:
        for parts, file in paths:
            alone = len(parts) == 1 and not CANVAS.fullmatch(parts[0])
            yield (file.inside.stem if alone else _canvas(parts[0])), file


def _of_nbgrader(parts: tuple[str, ...]) -> bool:
    """Whether a path is one of submitted/<student>/<assignment>/."""
    return parts[0] == SUBMITTED and len(parts) > 3


def _canvas(name: str) -> str:
    """The student of a name that Canvas gave to a file; any other name as it is."""
    matched = CANVAS.fullmatch(name)
    return f"{matched['name']}_{matched['user']}" if matched else name


def _gradescope(paths: list[tuple[tuple[str, ...], _File]], metadata: _File) -> Iterator[tuple[str, _File]]:
    try:
        told = yaml.safe_load(_text(metadata)) or {}
    except yaml.YAMLError:
        raise BadInput(f"{metadata.inside} is not valid YAML: export the submissions from Gradescope again.") from None
    for (folder, *inner), file in paths:
        if not inner or not folder.startswith(GRADESCOPE_FOLDER):
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


@dataclass(frozen=True)
class _Handed:
    """What one student handed in, zips opened."""

    files: list[_File]
    problems: dict[str, str]  # by name of a zip that is not read

    def best(self, top: PurePosixPath, homework: str) -> _File | None:
        """The one to grade: named after the homework, notebooks before scripts, outer ones first, else by name."""

        def rank(file: _File) -> tuple[bool, bool, bool, int, str]:
            inside = file.inside
            named = homework in inside.stem, inside.suffix == ".ipynb", homework in (inside.stem, *inside.parts)
            return *named, -len(inside.parts), str(inside)

        return max((file for file in self.files if _may_be_graded(file, top, homework)), key=rank, default=None)


def _by_student(found: Iterable[tuple[str, _File]], source: Path) -> dict[str, _Handed]:
    """What every student handed in; one who hands in too much costs nobody else anything."""
    files: dict[str, list[_File]] = {}
    for student, file in found:
        files.setdefault(_safe(student), []).append(file)
    handed = {student: _unpacked(files[student]) for student in sorted(files)}
    zipped = [file.member for one in handed.values() for file in one.files if file.member and file.source == source]
    if len(zipped) > MAX_ENTRIES:
        raise BadInput(f"{source} has {len(zipped)} entries; at most {MAX_ENTRIES} are read.")
    if sum(member.file_size for member in zipped) > MAX_TOTAL:
        raise BadInput(f"{source} unpacks to more than {MAX_TOTAL // 2**30} GB.")
    return handed


def _unpacked(files: list[_File]) -> _Handed:
    """One student's files, those in a zip in its place; none of a zip's where they are too many or too large."""
    left = _Left(MAX_STUDENT_ENTRIES, MAX_STUDENT_TOTAL)
    own = [file for file in files if file.inside.suffix.lower() != ".zip"]
    problems: dict[str, str] = {}
    try:
        left.take(own)
    except _Unreadable as problem:
        return _Handed([], {str(own[0].inside): str(problem)})
    for zipped in (file for file in files if file.inside.suffix.lower() == ".zip"):
        try:
            inner = [file for file in _student_zip(zipped) if file.inside.suffix.lower() != ".zip"]
            left.take([zipped, *inner])
            own += inner
        except _Unreadable as problem:
            problems[str(zipped.inside)] = str(problem)
    return _Handed(own, problems)


@dataclass
class _Left:
    """How much more of one student's is read out of zips."""

    entries: int
    size: int

    def take(self, files: list[_File]) -> None:
        """Count these in; raises `_Unreadable` where they are too many or too large."""
        members = [file.member for file in files if file.member]
        size = sum(member.file_size for member in members)
        if len(members) > self.entries or size > self.size:
            raise _Unreadable(_too_many())
        self.entries -= len(members)
        self.size -= size


def _too_many() -> str:
    return (
        f"It holds more than {MAX_STUDENT_ENTRIES} files or unpacks to more than {MAX_STUDENT_TOTAL // 2**20} MB. "
        "Hand in the notebook and its trained model only."
    )


def _may_be_graded(file: _File, top: PurePosixPath, homework: str) -> bool:
    """A notebook anywhere; a script where it cannot be a module that came with a notebook."""
    folder = file.inside.parent
    handed_in = folder == top or folder.name == homework or folder.name.startswith(GRADESCOPE_FOLDER)
    return file.inside.suffix == ".ipynb" or (
        file.inside.suffix == ".py" and (handed_in or file.inside.stem == homework)
    )


def _entries(handed: dict[str, _Handed], top: PurePosixPath, homework: str) -> list[Entry]:
    """One entry per student with something to grade, or with a zip that cannot be read."""
    best = {student: one.best(top, homework) for student, one in handed.items()}
    alone = sum(file is not None and file.inside.parent == top for file in best.values()) == 1
    shared = [(owner, file) for owner, one in handed.items() for file in _checkpoints(one.files, top)]
    entries = []
    for student, one in handed.items():
        file = best[student]
        if file is None:
            found = next(iter(one.problems.items()), None)
            entries += [Entry(student, _printable(found[0]), None, found[1])] if found else []
            continue
        checkpoints = _checkpoints(one.files, file.inside.parent)
        if file.inside.parent == top:  # in a folder of many students' files theirs bear the notebook's name
            stem = f"{file.inside.stem}."
            checkpoints = [c for owner, c in shared if alone or owner == student or c.inside.name.startswith(stem)]
        notes = [f"{_printable(name)} was left out: {problem}" for name, problem in one.problems.items()]
        entries.append(_entry(file, student, checkpoints, notes))
    return entries


def _checkpoints(files: list[_File], folder: PurePosixPath) -> list[_File]:
    return [file for file in files if file.inside.suffix == CHECKPOINT and file.inside.parent == folder]


def _beside(source: Path) -> list[_File]:
    """The checkpoints beside a single notebook, by its name."""
    found = sorted(source.parent.glob(f"*{CHECKPOINT}"))
    return [_File(PurePosixPath(path.name), path) for path in found if path.name.startswith(f"{source.stem}.")]


def _safe(student: str) -> str:
    """The student's id with nothing in it that means something to a file system or a page; still one per student."""
    safe = UNSAFE.sub("_", student).strip(".+-@")[:50] or "unnamed"
    if safe == student:
        return safe
    return f"{safe}-{hashlib.sha256(student.encode(errors='surrogatepass')).hexdigest()[:6]}"


def _printable(name: str) -> str:
    """A file's name without what a terminal, a page or an encoding stumbles over; different names stay different."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
