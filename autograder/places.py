"""Where things are, in the course at hand: AUTOGRADER_COURSE, else found from the current folder upward, else ours."""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from pathlib import Path

from autograder.box import ours
from autograder.course import find_course
from autograder.errors import BadInput

PACKAGE = Path(__file__).resolve().parent  # autograder/
REPOSITORY = PACKAGE.parent
COURSE_UTILS = REPOSITORY / "course_utils"
LOCK = REPOSITORY / "requirements.lock"  # of the engine

THE_COURSE = find_course(REPOSITORY)
COURSE = THE_COURSE.root
SOLUTIONS = COURSE / THE_COURSE.solutions
SUITES = COURSE / THE_COURSE.suites
ASSIGNMENTS = COURSE / THE_COURSE.assignments
BUILD = COURSE / "build"

if COURSE != REPOSITORY:
    sys.path.append(str(COURSE))  # its own packages, and what its suites share
ours.use(THE_COURSE.box_packages)


def package_path(name: str) -> Path:
    """The folder or file of a package of the course's, or of one that this repository has."""
    place = name.replace(".", "/")
    for root in (COURSE, REPOSITORY):
        for path in (root / place, root / f"{place}.py"):
            if path.is_file() or (path / "__init__.py").is_file():
                return path
    raise BadInput(
        f"{THE_COURSE.file}: there is no package {name}. Make {place}/__init__.py in that folder, or take the name out."
    )


@cache
def package_version() -> str:
    """The version of this package, as its own file tells."""
    return str(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"])


def shown(path: Path) -> str:
    """The path as a person in the course's folder would type it."""
    return str(path.relative_to(COURSE)) if path.is_relative_to(COURSE) else str(path)
