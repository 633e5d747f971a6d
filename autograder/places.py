"""Where things are: the course (solutions, suites, assignments), found from this file or from AUTOGRADER_COURSE."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent  # autograder/
REPOSITORY = PACKAGE.parent
COURSE_UTILS = REPOSITORY / "course_utils"
LOCK = REPOSITORY / "requirements.lock"

COURSE = Path(os.environ.get("AUTOGRADER_COURSE", REPOSITORY)).resolve()
SOLUTIONS = COURSE / "solutions"
SUITES = COURSE / "autograder" / "suites"
ASSIGNMENTS = COURSE / "assignments"
BUILD = COURSE / "build"


def shown(path: Path) -> str:
    """The path as a person in the course's folder would type it."""
    return str(path.relative_to(COURSE)) if path.is_relative_to(COURSE) else str(path)
