"""A course as its `course.toml` describes it: what the engine must know of a course besides its homeworks."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from autograder.errors import BadInput

FILE = "course.toml"
VARIABLE = "AUTOGRADER_COURSE"  # names a course's folder; otherwise it is found from the current one upward
RNGS = ("torch", "numpy")
PAGE_RULES = ("warn", "refuse")
SCORINGS = ("mistakes", "cases")
RENAMED = ("graded", "told")
BASE = ("math", "pytest", "course_utils", "__future__")  # what every public check may import
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_PLACE = re.compile(r"[\w-]+(/[\w-]+)*")


@dataclass(frozen=True)
class Course:
    """What stands in `course.toml`; `root` is the course's folder, `file` where it was read."""

    root: Path
    file: Path
    name: str
    title: str
    rng: str  # what the fixture `rng` is, and the kind of arrays that tests get from students: torch or numpy
    student_packages: tuple[str, ...]  # that students install, pinned as in requirements.lock
    solutions: str = "solutions"
    suites: str = "suites"
    assignments: str = "assignments"
    allowed_imports: tuple[str, ...] = ()  # in public checks, besides BASE, the rng's library and `packages`
    card: str = ""  # "module:function" that gives the convention card; none where empty
    rooms: tuple[str, ...] = ()  # of course_utils, shipped whole; of all others, what a homework imports
    packages: tuple[str, ...] = ()  # the course's own, for students: shipped, and in the box
    kits: tuple[str, ...] = ()  # in the box only, for hidden suites
    page_rules: str = "warn"  # or "refuse": a homework whose page breaks a rule is not built, unless as a draft
    requirements: str = "warn"  # or "refuse": every sentence that asks for something bears a mark, or nothing is built
    scoring: str = "mistakes"  # one mistake that explains all failed cases costs its price; "cases": only cases count
    renamed_answers: str = "graded"  # a function under another name that must be the answer: "graded", or only "told"

    @property
    def imports(self) -> set[str]:
        """What public checks may import."""
        return {*BASE, self.rng, *self.allowed_imports, *self.packages}

    @property
    def box_packages(self) -> tuple[str, ...]:
        """What a box has beside the student's code, and keeps as we wrote it."""
        return ("course_utils", *self.packages, *self.kits)


def find_course(repository: Path) -> Course:
    """The course of AUTOGRADER_COURSE, else of the current folder or one above it, else of this repository.

    A folder that AUTOGRADER_COURSE names and that has no course.toml is laid out like this repository; its pages need
    not keep this course's rules.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted:
        folder = Path(wanted).resolve()
        if not folder.is_dir():
            raise BadInput(f"{VARIABLE} is {wanted}, and there is no such folder. Name the folder of a {FILE}.")
        if (folder / FILE).is_file():
            return read_course(folder / FILE, folder)
        return replace(read_course(repository / FILE, folder), page_rules="warn", requirements="warn")
    here = Path.cwd()
    folder = next((place for place in (here, *here.parents) if (place / FILE).is_file()), repository)
    return read_course(folder / FILE, folder)


def read_course(path: Path, root: Path) -> Course:
    """Read and check a `course.toml`; raises `BadInput` with the file, what is wrong in it and what to do."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}). Make one with `autograder new course`.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path}: not valid TOML ({error}). Mend that line.") from None
    known = {field.name: field for field in fields(Course) if field.name not in ("root", "file")}
    if unknown := sorted(told.keys() - known.keys()):
        raise BadInput(f"{path}: unknown key `{unknown[0]}`. Use these: {', '.join(known)}.")
    needed = [name for name, field in known.items() if field.default is MISSING and name not in told]
    if needed:
        raise BadInput(f"{path}: `{needed[0]}` is missing. Add it; docs/your-course.md tells what each key means.")
    course = Course(root, path, **{name: _value(path, name, value) for name, value in told.items()})
    if not _NAME.fullmatch(course.name):
        raise BadInput(f"{path}: the name {course.name!r} is not one. Use small letters, digits, - and _.")
    if course.rng not in RNGS:
        raise BadInput(f"{path}: rng is {course.rng!r}. Write one of {', '.join(RNGS)}.")
    if course.page_rules not in PAGE_RULES:
        raise BadInput(f"{path}: page_rules is {course.page_rules!r}. Write one of {', '.join(PAGE_RULES)}.")
    if course.requirements not in PAGE_RULES:
        raise BadInput(f"{path}: requirements is {course.requirements!r}. Write one of {', '.join(PAGE_RULES)}.")
    if course.scoring not in SCORINGS:
        raise BadInput(f"{path}: scoring is {course.scoring!r}. Write one of {', '.join(SCORINGS)}.")
    if course.renamed_answers not in RENAMED:
        raise BadInput(f"{path}: renamed_answers is {course.renamed_answers!r}. Write one of {', '.join(RENAMED)}.")
    for key in ("solutions", "suites", "assignments"):
        if not _PLACE.fullmatch(getattr(course, key)):
            raise BadInput(f"{path}: {key} is {getattr(course, key)!r}. Name a folder below {path.parent}.")
    if course.card and not all(_MODULE.fullmatch(part) for part in course.card.partition(":")[::2]):
        raise BadInput(f'{path}: card is {course.card!r}. Write "module:function", or leave it out.')
    for name in (*course.packages, *course.kits, *course.rooms):
        if not _MODULE.fullmatch(name):
            raise BadInput(f"{path}: {name!r} is no name of a package. Write it as in an import.")
    return course


def _value(path: Path, name: str, value: Any) -> Any:
    """A value of the kind that its key has: a text, or a list of texts."""
    wanted = next(field.type for field in fields(Course) if field.name == name)
    if wanted == "str":
        if isinstance(value, str):
            return value
        raise BadInput(f'{path}: `{name}` is {value!r}. Write it as a text: {name} = "...".')
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise BadInput(f'{path}: `{name}` is {value!r}. Write it as a list of texts: {name} = ["..."].')
