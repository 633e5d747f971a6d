"""Find the submissions: a folder, a zip (of zips), an nbgrader course, an export of Gradescope, Canvas or Moodle.

Whose a file is follows from where a platform or a teacher put it. What lies in a student's folder or zip is that
student's, whatever it is called.
"""

from __future__ import annotations

import calendar
import hashlib
import io
import lzma
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

import yaml

from autograder.assumptions import Assumption, listed
from autograder.errors import BadInput
from autograder.grading.choose import COPY, DISGUISED, Attempt, attempt_in, choose, kind_of, numbers
from autograder.homework import Homework
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
MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<user>\d+)_assignsubmission_(?:file|onlinetext)(?P<file>_.*)?", re.DOTALL)
DOCUMENTS = {".pdf", ".docx", ".doc", ".odt", ".rtf", ".pages", ".html", ".htm", ".rar", ".7z", ".tar", ".gz", ".tgz"}
DOCUMENTS |= {".zip"}  # a file of its own among notebooks that somebody may have handed in instead of one
WORK = DOCUMENTS | {".txt", ".md", ".tex", ".png", ".jpg", ".jpeg", ".heic", ".py", ".json"}  # the same in a folder
OURS = {"tests", "course_utils", "data", "__pycache__"}  # folders that come with a homework
OURS_TOO = re.compile(
    r"readme.*|requirements.*\.txt|pyproject\.toml|environment\.yml|licen[cs]e.*|timestamp\.txt", re.I
)
MAX_ZIPS = 3  # zips within zips that are opened
ADDED = re.compile(r"[ _-]*(?:\(\d+\)|(?:copy|final|attempt|version|v)?[ _-]*\d*)$", re.I)  # by people and browsers
UNSAFE = re.compile(r"[^\w.@+-]+")
HIDDEN = {".ipynb_checkpoints", "__MACOSX"}
DIRECTORY_RECORD = b"PK\x01\x02"  # stands before every entry in a zip's directory
NOWHERE = PurePosixPath()
TOO_LARGE = f"The file is larger than {MAX_BYTES // 2**20} MB. Clear the outputs and hand it in again."
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
class Handin:
    """One student's file, or what kept it from being found or read."""

    student: str
    path: str  # as shown to staff
    content: bytes | None
    problem: str = ""
    checkpoints: dict[str, bytes] = field(default_factory=dict)  # name -> content of the safetensors files beside it
    assumptions: tuple[Assumption, ...] = ()  # about the files
    status: str = "unreadable"  # where there is no content

    @property
    def suffix(self) -> str:
        """The kind of file, in small letters."""
        return kind_of(PurePosixPath(self.path))

    def files_for(self, homework: str) -> tuple[tuple[str, bytes], ...]:
        """The checkpoints as they stand beside the notebook in the box: a single one bears the homework's name."""
        if len(self.checkpoints) == 1:
            return tuple((f"{homework}{CHECKPOINT}", data) for data in self.checkpoints.values())
        return tuple(sorted(self.checkpoints.items()))


@dataclass(frozen=True)
class Collected:
    """What a source holds: a submission per student, and what was assumed about files that are nobody's."""

    entries: list[Handin]
    assumptions: tuple[Assumption, ...] = ()


def collect(source: Path, homework: Homework | str, owner: str | None = None) -> list[Handin]:
    """Every submission in `source`, one per student, sorted by student; raises `BadInput` when there is none."""
    return gather(source, homework, owner).entries


def gather(source: Path, homework: Homework | str, owner: str | None = None) -> Collected:
    """The same with what was assumed about the class.

    Where the source is the place of one student, the `owner`, all that is in it is theirs.
    """
    name = homework if isinstance(homework, str) else homework.name
    if not source.exists():
        raise BadInput(f"There is nothing at {source}. Give a folder, a zip, or one notebook.")
    if source.is_file() and kind_of(PurePosixPath(source.name)) in SUFFIXES:
        file = _File(PurePosixPath(source.name), source)
        return Collected([_entry(file, owner or safe_id(source.stem), _beside(source))])
    files = _visible(_class_zip(source) if source.is_file() else _folder_files(source))
    top = _class_folder(files, name) if owner is None else NOWHERE
    found = _layout(files, top, name) if owner is None else (("", replace(file, certain=True)) for file in files)
    entries, assumed = _entries(_by_student(found, source), top, homework)
    if owner is not None:
        entries = [replace(entry, student=owner) for entry in entries]
    if not entries:
        raise BadInput(
            f"No submission of {name} in {source}. Expected <student>.ipynb, <student>/{name}.ipynb, "
            f"nbgrader's submitted/<student>/{name}/, or an export of Gradescope, Canvas or Moodle."
        )
    return Collected([_named(entry) for entry in _unlike(entries, name)], assumed)


def best_in(folder: Path, homework: Homework | str) -> tuple[Path | None, list[Assumption]]:
    """The file to grade in the folder of one student's attempt, and what was assumed."""
    found = _visible(_folder_files(folder)) if folder.is_dir() and any(folder.iterdir()) else []
    files = [file for file in found if kind_of(file.inside) in SUFFIXES]
    files = [file for file in files if not any(part.startswith((".", "__")) for part in file.inside.parts)]
    if not files:
        return None, []
    number, assumed = choose(files, homework)
    return folder / files[number].inside, assumed


class _Unreadable(Exception):
    """A file that cannot be read; the text says why."""

    def __init__(self, told: str, status: str = "unreadable") -> None:
        super().__init__(told)
        self.status = status


@dataclass(frozen=True)
class _File:
    """A file of the source, by its path inside; read only when it turns out to be of use."""

    inside: PurePosixPath
    source: Path | _File  # a file, or the zip that has it as `member`
    member: zipfile.ZipInfo | None = None
    attempt: Attempt = ()
    series: str = ""  # attempts are compared where this is the same
    certain: bool = False  # whether a platform tells whose it is

    @property
    def time(self) -> float:
        """When it was last changed, 0 where nobody knows."""
        if self.member is not None:
            return float(calendar.timegm((*self.member.date_time, 0, 0, 0)))
        return self.source.stat().st_mtime if isinstance(self.source, Path) else 0.0

    def read(self) -> bytes:
        """Its content; raises `_Unreadable`."""
        try:
            if self.member is None:
                content = self._plain()
            elif self.member.file_size > MAX_BYTES:
                raise _Unreadable(TOO_LARGE, "too large")
            else:
                with _archive(self.source) as archive, archive.open(self.member) as file:
                    content = file.read(MAX_BYTES + 1)
        except ARCHIVE_TROUBLE as error:
            raise _Unreadable(f"The file cannot be read ({type(error).__name__}).") from None
        if len(content) > MAX_BYTES:
            raise _Unreadable(TOO_LARGE, "too large")
        return content

    def _plain(self) -> bytes:
        assert isinstance(self.source, Path)
        if self.source.is_symlink() or not self.source.is_file():
            raise _Unreadable("Not a regular file.")
        with open(self.source, "rb") as file:
            return file.read(MAX_BYTES + 1)


def _entry(file: _File, student: str, checkpoints: list[_File], assumed: Iterable[Assumption] = ()) -> Handin:
    """The student's file with the checkpoints that came with it."""
    shown = _printable(str(file.inside))
    try:
        content = file.read()
    except _Unreadable as problem:
        return Handin(student, shown, None, str(problem), {}, tuple(assumed), problem.status)
    kept: dict[str, bytes] = {}
    told = list(assumed)
    for checkpoint in checkpoints[:MAX_CHECKPOINT_FILES]:
        name = _printable(checkpoint.inside.name)
        try:
            data = checkpoint.read()
            if sum(map(len, kept.values())) + len(data) > MAX_CHECKPOINTS:
                raise _Unreadable(f"Checkpoints may have {MAX_CHECKPOINTS // 2**20} MB together.")
            kept[name] = data
        except _Unreadable as problem:
            told.append(Assumption("files", f"{name} was left out: {problem}", where=name))
    if len(checkpoints) > MAX_CHECKPOINT_FILES:
        some = f"{len(checkpoints)} checkpoints were handed in; the first {MAX_CHECKPOINT_FILES} are read."
        told.append(Assumption("files", some, where=shown))
    return Handin(student, shown, content, "", kept, tuple(told))


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
            known = source if isinstance(source, _File) else _File(below, source)
            yield replace(known, inside=below / inside, source=source, member=member)


def _class_folder(files: list[_File], homework: str) -> PurePosixPath:
    """The folder that holds the class: the top, or the one folder around it all that a zip of a folder has."""
    found = [file.inside for file in files if kind_of(file.inside) in (*SUFFIXES, ".zip")]
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
    if CANVAS.fullmatch(name) or MOODLE.fullmatch(name) or any(PurePosixPath(one).stem == homework for one in loose):
        return NOWHERE  # a student's own
    if name == homework or SUBMITTED in folders or (loose and all(map(CANVAS.fullmatch, loose))):
        return top
    students = {path.parts[0] for path in inner if path.suffix.lower() != ".py" or path.stem == homework}
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
                yield parts[1], replace(file, certain=True)
    else:
        for parts, file in paths:
            if matched := MOODLE.fullmatch(parts[0]) or CANVAS.fullmatch(parts[0]):
                yield f"{matched['name']}_{matched['user']}", _uploaded(file, matched)
            else:
                name = PurePosixPath(DISGUISED.sub(".ipynb", file.inside.name))
                yield (name.stem if len(parts) == 1 else parts[0]), file


def _uploaded(file: _File, matched: re.Match[str]) -> _File:
    """A file as Canvas or Moodle names it; Canvas numbers files, and one that is uploaded again has a new number."""
    number = numbers(matched["submission"]) if matched.re is CANVAS else ()
    plain = PurePosixPath(matched["file"] or "")
    return replace(file, certain=True, attempt=number, series=COPY.sub("", plain.stem) if number else "")


def _of_nbgrader(parts: tuple[str, ...]) -> bool:
    """Whether a path is one of submitted/<student>/<assignment>/."""
    return parts[0] == SUBMITTED and len(parts) > 3


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
        made = record.get(":created_at") if isinstance(record, dict) else None
        attempt = (*_moment(made), *numbers(folder))
        for person in submitters or [{}]:
            known = person if isinstance(person, dict) else {}
            student = known.get(":sid") or known.get(":email") or known.get(":name")
            yield str(student or folder), replace(file, certain=bool(student), attempt=attempt)


def _moment(made: object) -> Attempt:
    """A time as Gradescope tells it, as a number; 0 where it tells none."""
    try:
        when = made if isinstance(made, datetime) else datetime.fromisoformat(str(made))
        return (int((when if when.tzinfo else when.astimezone()).timestamp()),)
    except (ValueError, OverflowError, OSError):
        return (0,)


def _text(file: _File) -> str:
    try:
        return file.read().decode("utf-8", "replace")
    except _Unreadable as problem:
        raise BadInput(f"{file.inside}: {problem}") from None


@dataclass(frozen=True)
class _Handed:
    """What one student handed in, zips opened."""

    files: list[_File]
    problems: dict[str, _Unreadable]  # by name of a zip that is not read
    certain: bool  # whether a platform tells that it is a student's


def _by_student(found: Iterable[tuple[str, _File]], source: Path) -> dict[str, _Handed]:
    """What every student handed in; one who hands in too much costs nobody else anything."""
    files: dict[str, list[_File]] = {}
    for student, file in found:
        files.setdefault(safe_id(student), []).append(file)
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
    own = [file for file in files if not _is_zip(file)]
    certain = any(file.certain for file in files)
    problems: dict[str, _Unreadable] = {}
    try:
        left.take(own)
    except _Unreadable as problem:
        return _Handed([], {str(own[0].inside): problem}, certain)
    zips = [(1, file) for file in files if _is_zip(file)]
    while zips:
        depth, zipped = zips.pop(0)
        try:
            inner = _student_zip(zipped)
            left.take([zipped, *inner])
            own += [file for file in inner if not _is_zip(file)]
            deeper = [(depth + 1, file) for file in inner if _is_zip(file)]
            if deeper and depth == MAX_ZIPS:
                raise _Unreadable(f"More than {MAX_ZIPS} zips are packed into each other. Hand in the notebook itself.")
            zips += deeper
            if not inner:
                raise _Unreadable("The zip is empty. Hand in the notebook, or a zip that holds it.", "empty")
        except _Unreadable as problem:
            problems[str(zipped.inside)] = problem
    return _Handed(own, problems, certain)


def _is_zip(file: _File) -> bool:
    return file.inside.suffix.lower() == ".zip"


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
    folder, suffix = file.inside.parent, kind_of(file.inside)
    handed_in = folder == top or folder.name == homework or folder.name.startswith(GRADESCOPE_FOLDER)
    return suffix == ".ipynb" or (suffix == ".py" and (handed_in or file.inside.stem == homework))


def _gradable(files: list[_File], top: PurePosixPath, homework: str) -> list[_File]:
    """The files that could be graded, each with its attempt; any script of the student's where there is no other."""
    found = [file for file in files if _may_be_graded(file, top, homework)]
    scripts = [file for file in files if file.inside.suffix.lower() == ".py" and not _comes_along(file)]
    below = PurePosixPath(*top.parts, *([files[0].inside.parts[len(top.parts)]] if files else []))
    return [replace(file, attempt=file.attempt or attempt_in(file.inside, below)) for file in found or scripts]


def _comes_along(file: _File) -> bool:
    """Whether a file is one that the course gives."""
    return bool(OURS & set(file.inside.parts[:-1])) or OURS_TOO.fullmatch(file.inside.name) is not None


def _entries(
    handed: dict[str, _Handed], top: PurePosixPath, homework: Homework | str
) -> tuple[list[Handin], tuple[Assumption, ...]]:
    """One entry per student who handed in anything, and what is nobody's."""
    name = homework if isinstance(homework, str) else homework.name
    gradable = {student: _gradable(one.files, top, name) for student, one in handed.items()}
    alone = sum(any(file.inside.parent == top for file in files) for files in gradable.values()) == 1
    shared = [(owner, file) for owner, one in handed.items() for file in _checkpoints(one.files, top)]
    entries, nobodys, used = [], [], set()
    for student, one in handed.items():
        files = gradable[student]
        if not files:
            entry = _nothing_to_grade(student, one, top)
            entries += [entry] if entry else []
            nobodys += [] if entry else one.files
            continue
        number, assumed = choose(files, homework)
        file = files[number]
        checkpoints = _checkpoints(one.files, file.inside.parent)
        if file.inside.parent == top:  # in a folder of many students' files theirs bear the notebook's name
            stem = f"{file.inside.stem}."
            checkpoints = [c for owner, c in shared if alone or owner == student or c.inside.name.startswith(stem)]
        used |= {str(checkpoint.inside) for checkpoint in checkpoints}
        assumed += _left_out(one, [*files, *checkpoints])
        entries.append(_entry(file, student, checkpoints, assumed))
    names = [_printable(str(file.inside)) for file in nobodys if str(file.inside) not in used]
    told = f"These files are nobody's submission: {listed(names)}."
    return entries, (Assumption("files", told, where=listed(names)),) if names else ()


def _left_out(one: _Handed, taken: list[_File]) -> list[Assumption]:
    """What is told about the other files of a student whose work is graded."""
    told = [
        Assumption("files", f"{_printable(name)} was left out: {problem}", where=_printable(name))
        for name, problem in one.problems.items()
    ]
    known = {str(file.inside) for file in taken}
    others = [file for file in one.files if str(file.inside) not in known and not _comes_along(file)]
    if others:
        names = listed(_printable(str(file.inside)) for file in others)
        sentence = f"{len(others)} other file{'s were' if len(others) > 1 else ' was'} not read: {names}."
        told.append(Assumption("files", sentence, where=names))
    return told


def _nothing_to_grade(student: str, one: _Handed, top: PurePosixPath) -> Handin | None:
    """The entry of a student whose files hold no notebook; None for files that may be nobody's."""
    for name, problem in one.problems.items():
        return Handin(student, _printable(name), None, str(problem), status=problem.status)
    work = [file for file in one.files if file.inside.suffix.lower() in (DOCUMENTS if _is_loose(file, top) else WORK)]
    if not (work or one.certain) or not one.files:
        return None
    names = [_printable(file.inside.name) for file in work or one.files]
    told = f"There is no notebook in what you handed in, only {listed(names)}. Hand in the .ipynb file itself."
    return Handin(student, _printable(str((work or one.files)[0].inside)), None, told, status="no notebook")


def _is_loose(file: _File, top: PurePosixPath) -> bool:
    return file.inside.parent == top


def _unlike(entries: list[Handin], homework: str) -> list[Handin]:
    """The entries, each told where its student's name, which is a file's or a folder's, may mean another."""
    alike: dict[str, list[str]] = {}
    for entry in entries:
        alike.setdefault(folded(_name_of(entry)), []).append(entry.student)
    return [_with(entry, _doubt(entry, alike, homework)) for entry in entries]


def _name_of(entry: Handin) -> str:
    """What a student is called in the source; the id may be a harmless form of it."""
    path = PurePosixPath(entry.path)
    parts = [*path.parts, *(PurePosixPath(part).stem for part in path.parts)]
    return next((part for part in parts if safe_id(part) == entry.student), entry.student)


def _doubt(entry: Handin, alike: dict[str, list[str]], homework: str) -> list[Assumption]:
    """Why it is not certain whose a submission is."""
    name = folded(_name_of(entry))
    same = [student for student in alike[name] if student != entry.student]
    others = [student for student in alike.get(ADDED.sub("", name), []) if student != entry.student]
    told = ""
    if same:
        told = f"{entry.path} is taken as the work of {entry.student}; another name differs only in case or accents."
    elif others:
        told = f"{entry.path} is taken as the work of {entry.student}; it could be another's."
    elif (entry.student == homework and len(alike) > 1) or entry.student.startswith(GRADESCOPE_FOLDER):
        told = f"{entry.path} does not tell whose it is: taken as the work of a student of that name."
    return [Assumption("student", told, listed(same or others), entry.path)] if told else []


def _with(entry: Handin, assumed: list[Assumption]) -> Handin:
    return replace(entry, assumptions=(*entry.assumptions, *assumed)) if assumed else entry


def _named(entry: Handin) -> Handin:
    """The entry with its student in all that was assumed about it."""
    return replace(entry, assumptions=tuple(replace(one, student=entry.student) for one in entry.assumptions))


def folded(name: str) -> str:
    """What a file system that does not tell case or accents apart makes of a name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _checkpoints(files: list[_File], folder: PurePosixPath) -> list[_File]:
    return [file for file in files if file.inside.suffix.lower() == CHECKPOINT and file.inside.parent == folder]


def _beside(source: Path) -> list[_File]:
    """The checkpoints beside a single notebook, by its name."""
    found = sorted(source.parent.glob(f"*{CHECKPOINT}"))
    return [_File(PurePosixPath(path.name), path) for path in found if path.name.startswith(f"{source.stem}.")]


def safe_id(student: str) -> str:
    """The student's id with nothing in it that means something to a file system or a page; still one per student."""
    safe = UNSAFE.sub("_", student).strip(".+-@")[:50] or "unnamed"
    if safe == student:
        return safe
    return f"{safe}-{hashlib.sha256(student.encode(errors='surrogatepass')).hexdigest()[:6]}"


def _printable(name: str) -> str:
    """A file's name without what a terminal, a page or an encoding stumbles over; different names stay different."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
