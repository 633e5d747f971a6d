"""The zip that students get: one assignment, what it needs of course_utils as an installable package, nothing else."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path

from autograder.builder.reach import needed_modules
from autograder.errors import BadInput
from autograder.places import ASSIGNMENTS, COURSE, COURSE_UTILS, LOCK, THE_COURSE, package_path, package_version
from autograder.write import write
from course_utils.explain.sealed_prints import FILE, Unreadable, unpack

Moment = tuple[int, int, int, int, int, int]
NO_TIME: Moment = (1980, 1, 1, 0, 0, 0)  # the same files are the same bytes
SETUP_PIN = "setuptools"  # builds course_utils
PINS = COURSE / LOCK.name if (COURSE / LOCK.name).is_file() else LOCK  # a course may pin other versions


def release(name: str, out: Path) -> Path:
    """Write `<out>/<name>.zip` and return its path."""
    folder = ASSIGNMENTS / name
    if not (folder / f"{name}.ipynb").is_file():
        raise BadInput(f"{name} is not built. Run `autograder build {name}` first.")
    target = out / f"{name}.zip"
    write({target: zip_bytes(release_files(name))}, [])
    return target


def release_files(name: str) -> dict[str, bytes]:
    """The content of the zip: path inside it -> bytes."""
    original = original_files(name)
    files = original | {
        path.relative_to(COURSE_UTILS.parent).as_posix(): path.read_bytes() for path in needed_modules(_code(original))
    }
    for package in THE_COURSE.packages:
        path = package_path(package)
        for file in [path] if path.is_file() else _clean(path):
            files[file.relative_to(path.parent).as_posix()] = file.read_bytes()
    files[f"course_utils/originals/{name}.zip"] = zip_bytes(original, NO_TIME)
    pins = student_pins()
    files["course_utils/pins.txt"] = pins.encode()
    files["requirements.txt"] = pins.encode()
    files["pyproject.toml"] = _pyproject().encode()
    files["README.md"] = README.format(name=name, short=name.partition("_")[0]).encode()
    return {f"{name}/{path}": content for path, content in files.items()}


def original_files(name: str) -> dict[str, bytes]:
    """The notebook and its `tests`: what `course start` unpacks, and what a student's copy is compared with."""
    assignment = ASSIGNMENTS / name
    return {str(path.relative_to(assignment)): path.read_bytes() for path in _clean(assignment)}


def _code(original: dict[str, bytes]) -> list[str]:
    """The code of a homework's notebook, checks and probes; what is no Python (a magic) imports nothing."""
    sources = [content.decode() for path, content in original.items() if path.endswith(".py")]
    for path, content in original.items():
        if Path(path).name == FILE:
            try:
                sources += [known.probes for known in unpack(content).values()]
            except Unreadable as error:
                raise BadInput(f"The file {path} {error}. Run `autograder build` first.") from None
    for path, content in original.items():
        cells = json.loads(content)["cells"] if path.endswith(".ipynb") else []
        sources += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return sources


def student_pins(lock: Path = PINS) -> str:
    """The lock file's pins of what a student needs by name; pip finds the rest."""
    pins = dict(line.split("==") for line in lock.read_text().splitlines() if "==" in line and not line.startswith("#"))
    wanted = (*THE_COURSE.student_packages, SETUP_PIN)
    if missing := [package for package in wanted if package not in pins]:
        raise BadInput(
            f"{lock} pins no {missing[0]}, which course.toml names in `student_packages`. Correct the name, or put a "
            f"{LOCK.name} of your own beside course.toml."
        )
    return "".join(f"{package}=={pins[package]}\n" for package in wanted)


def zip_bytes(files: dict[str, bytes], when: Moment | None = None) -> bytes:
    """A zip of the files, in order of their names, all of one time: now, or the one given."""
    buffer = io.BytesIO()
    moment = when or time.localtime()[:6]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[path])
    return buffer.getvalue()


def _clean(folder: Path) -> list[Path]:
    ignored = {"__pycache__", ".ipynb_checkpoints"}
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not ignored & set(path.parts))
    return [path for path in files if path.suffix in {".py", ".ipynb", ".txt", ".dat"} and path.name != "pins.txt"]


def _pyproject() -> str:
    packages = "".join(f', "{package}*"' for package in THE_COURSE.packages)
    title = THE_COURSE.title.replace("\\", "").replace('"', "'")
    return PYPROJECT.format(version=package_version(), title=title, packages=packages)


PYPROJECT = """\
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"

[project]
name = "course-utils"
version = "{version}"
description = "What students import: {title}"
requires-python = ">=3.11"

[project.scripts]
course = "course_utils.terminal.main:main"

[tool.setuptools]
packages.find.include = ["course_utils*"{packages}]

[tool.setuptools.package-data]
course_utils = ["pins.txt", "originals/*.zip"]
"""

README = """\
# {name}

Once, in this folder, with Python 3.11 or newer:

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    .venv/bin/pip install --no-build-isolation .
    .venv/bin/course doctor

Then, whenever you work:

    .venv/bin/jupyter lab {name}.ipynb

(On Windows the programs are in `.venv\\Scripts\\`.) Fill in the cells that raise `NotImplementedError`, and run the
`grader.check(...)` cell below each of them to see whether you are on the right track. In a terminal, save first:

    .venv/bin/course check {short}       # all public checks as a table, with what is wrong
    .venv/bin/course progress        # what is done, what is left, and how long that takes
    .venv/bin/course submit {short}      # look the notebook over and write {name}-submission.zip: hand that in

`course start {short} --again` unpacks a fresh copy beside yours. For the next homework, `course start` with its zip
makes a folder for it; the environment stays the same. Each command tells more with `--help`.
"""
