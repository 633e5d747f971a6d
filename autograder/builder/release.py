"""The zip that students get: one assignment, course_utils as an installable package, and nothing else."""

from __future__ import annotations

import io
import time
import tomllib
import zipfile
from pathlib import Path

from autograder.builder.write import write
from autograder.errors import BadInput
from autograder.places import ASSIGNMENTS, COURSE_UTILS, LOCK, REPOSITORY

STUDENT_PACKAGES: tuple[str, ...] = ("einops", "jupyter", "jupyterlab", "matplotlib", "mlxtend", "num2words", "numpy")
STUDENT_PACKAGES += ("otter-grader", "pytest", "sacrebleu", "safetensors", "scikit-learn", "sympy", "torch", "tqdm")
Moment = tuple[int, int, int, int, int, int]
NO_TIME: Moment = (1980, 1, 1, 0, 0, 0)  # the same files are the same bytes
SETUP_PIN = "setuptools"  # builds course_utils


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
    files = original_files(name)
    files |= {f"course_utils/{path.relative_to(COURSE_UTILS)}": path.read_bytes() for path in _clean(COURSE_UTILS)}
    files[f"course_utils/originals/{name}.zip"] = zip_bytes(original_files(name), NO_TIME)
    pins = student_pins()
    files["course_utils/pins.txt"] = pins.encode()
    files["requirements.txt"] = pins.encode()
    files["pyproject.toml"] = _pyproject().encode()
    files["README.md"] = README.format(name=name, short=name.partition("_")[0]).encode()
    return {f"{name}/{path}": content for path, content in files.items()}


def original_files(name: str) -> dict[str, bytes]:
    """The notebook and its public checks: what `course start` unpacks, and what a student's copy is compared with."""
    assignment = ASSIGNMENTS / name
    return {str(path.relative_to(assignment)): path.read_bytes() for path in _clean(assignment)}


def student_pins(lock: Path = LOCK) -> str:
    """The lock file's pins of what a student needs by name; pip finds the rest."""
    pins = dict(line.split("==") for line in lock.read_text().splitlines() if "==" in line and not line.startswith("#"))
    return "".join(f"{package}=={pins[package]}\n" for package in (*STUDENT_PACKAGES, SETUP_PIN))


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
    return [path for path in files if path.suffix in {".py", ".ipynb", ".txt"} and path.name != "pins.txt"]


def _pyproject() -> str:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    return PYPROJECT.format(version=version)


PYPROJECT = """\
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"

[project]
name = "course-utils"
version = "{version}"
description = "What students of the Transformer course import: plots, checks, derivation tools"
requires-python = ">=3.11"

[project.scripts]
course = "course_utils.cli:main"

[tool.setuptools]
packages = ["course_utils", "course_utils.data"]

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
