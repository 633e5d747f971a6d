"""`autograder gradescope`: the zip that Gradescope makes its container from."""

from __future__ import annotations

import json
import re
import stat
import zipfile
from dataclasses import asdict
from pathlib import Path

from autograder.frontends.gradescope_run import Settings
from autograder.homework import Homework
from autograder.places import (
    ASSIGNMENTS,
    COURSE,
    COURSE_UTILS,
    LOCK,
    PACKAGE,
    REPOSITORY,
    SOLUTIONS,
    SUITES,
    THE_COURSE,
    package_path,
)
from course_utils.explain.sealed_prints import FILE

LEFT_OUT = {"__pycache__", ".ipynb_checkpoints", "suites"}


def bundle(homework: Homework, out: Path, settings: Settings) -> Path:
    """Write `<out>/<homework>-gradescope.zip` and return its path."""
    target = out / f"{homework.name}-gradescope.zip"
    out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in bundle_files(homework, settings).items():
            info = zipfile.ZipInfo(name)
            runs = name in ("setup.sh", "run_autograder")
            info.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return target


def bundle_files(homework: Homework, settings: Settings) -> dict[str, bytes]:
    """The content of the zip: this homework's suite and reference, and no other's but what it gives to students."""
    given = set(re.findall(r'given="(hw\w+)', homework.source.read_text(encoding="utf-8")))
    sources = {f"{name}.py" for name in {homework.name, *given}}
    files = {f"course/{THE_COURSE.solutions}/{name}": (SOLUTIONS / name).read_bytes() for name in sources}
    folders = {PACKAGE: "course/autograder", COURSE_UTILS: "course/course_utils"}
    folders[homework.suite] = f"course/{THE_COURSE.suites}/{homework.name}"
    for package in (*THE_COURSE.packages, *THE_COURSE.kits):
        if (path := package_path(package)).is_relative_to(COURSE):  # the engine's own come with it
            folders[path] = f"course/{path.relative_to(COURSE).as_posix()}"
    for folder, place in folders.items():
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if path.is_file() and not LEFT_OUT & set(inside.parts):
                files[f"{place}/{inside.as_posix()}".removesuffix("/.")] = path.read_bytes()
    for path in sorted(SUITES.glob("*.py")):  # what all suites share
        files[f"course/{THE_COURSE.suites}/{path.name}"] = path.read_bytes()
    known = ASSIGNMENTS / homework.name / "tests" / FILE  # fingerprints of the known mistakes
    if known.is_file():
        files[f"course/{THE_COURSE.assignments}/{homework.name}/tests/{FILE}"] = known.read_bytes()
    files["course/course.toml"] = THE_COURSE.file.read_bytes()
    files["course/requirements.lock"] = LOCK.read_bytes()
    files["course/pyproject.toml"] = (REPOSITORY / "pyproject.toml").read_bytes()
    files["settings.json"] = (json.dumps(asdict(settings), indent=1) + "\n").encode()
    files["setup.sh"] = SETUP.encode()
    files["run_autograder"] = RUN.encode()
    return files


SETUP = """\
#!/usr/bin/env bash
# Runs once, when Gradescope builds the container.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then  # Ubuntu 22.04
  apt-get install -y --no-install-recommends python3.11 python3.11-venv
  python=python3.11
fi
apt-get install -y --no-install-recommends bubblewrap ||
  echo "no bubblewrap: student code will run as a user without rights"
lock=/autograder/source/course/requirements.lock
torch=$(grep '^torch==' "$lock")
"$python" -m venv /autograder/venv
install() { /autograder/venv/bin/pip install --no-cache-dir "$@"; }
install --index-url https://download.pytorch.org/whl/cpu "$torch" || install "$torch"  # a fraction of the size
install -r "$lock"
"""

RUN = """\
#!/usr/bin/env bash
# Runs for every submission, in the folder that holds source/, submission/ and results/.
cd "$(dirname "$0")"
export PYTHONPATH="$PWD/source/course" AUTOGRADER_COURSE="$PWD/source/course"
exec "${AUTOGRADER_PYTHON:-$PWD/venv/bin/python}" -P -m autograder.frontends.gradescope_run "$PWD"
"""
