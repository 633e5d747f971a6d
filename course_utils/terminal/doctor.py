"""`course doctor`: is this machine ready for the homework? Each finding is ok, or says what to do."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import importlib.util
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PYTHON = (3, 11)
FREE_DISK = 10**9  # bytes
INSTALL = "Install the versions of the course again, as its README says"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, what was found, and what to do where it is not as it should be."""

    name: str
    ok: bool
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{'ok ' if self.ok else 'FIX'}  {self.name}: {self.found}"
        return f"{line}. {self.remedy}" if self.remedy else line


def examine(folder: Path | None = None) -> list[Finding]:
    """Everything that a homework needs, looked at one by one; a check that fails to run is a finding too."""
    here = folder or Path.cwd()
    checks: dict[str, Callable[[], list[Finding]]] = {
        "Python": python,
        "packages": packages,
        "torch device": device,
        "notebook kernel": kernel,
        "writing here": lambda: writing(here),
        "free disk": lambda: disk(here),
    }
    findings = []
    for name, check in checks.items():
        try:
            findings += check()
        except Exception as error:
            findings.append(Finding(name, False, f"{type(error).__name__}: {error}", INSTALL))
    return findings


def python() -> list[Finding]:
    """The version of Python that runs this."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= PYTHON:
        return [Finding("Python", True, version)]
    wanted = ".".join(map(str, PYTHON))
    return [Finding("Python", False, version, f"Make the environment again with Python {wanted} or newer")]


def packages() -> list[Finding]:
    """Every package that the course pins, against what is installed; a line only for those that differ."""
    pins = read_pins()
    if pins is None:
        return [Finding("packages", True, "not compared: no list of versions (pins.txt) was packed")]
    wrong = []
    for name, wanted in pins.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(Finding(name, False, f"missing, {wanted} is needed", INSTALL))
            continue
        if _public(found) != _public(wanted):
            wrong.append(Finding(name, False, f"{found}, {wanted} is needed", INSTALL))
    return wrong or [Finding("packages", True, f"all {len(pins)} as pinned")]


def device() -> list[Finding]:
    """The device that torch would compute on, in a course that has it."""
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    from course_utils.notebook.device import VARIABLE, pick_device

    try:
        chosen = pick_device()
    except ValueError as error:
        return [Finding("torch device", False, str(error), f"Change or unset {VARIABLE}")]
    torch.ones(2, device=chosen).sum().item()
    return [Finding("torch device", True, f"{chosen} (torch {torch.__version__})")]


def kernel() -> list[Finding]:
    """The Jupyter kernel `python3`, and that the Python it starts exists."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    remedy = "Run `python -m ipykernel install --sys-prefix`"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return [Finding("notebook kernel", False, "there is no kernel named python3", remedy)]
    program = spec.argv[0]
    if shutil.which(program) is None:
        return [Finding("notebook kernel", False, f"python3 starts {program}, which does not exist", remedy)]
    return [Finding("notebook kernel", True, f"python3 ({spec.display_name})")]


def writing(folder: Path) -> list[Finding]:
    """Whether a file can be written beside the notebook."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return [
            Finding(
                "writing here",
                False,
                f"{folder}: {error.strerror or error}",
                "Move the homework to a folder of your own",
            )
        ]
    return [Finding("writing here", True, str(folder))]


def disk(folder: Path) -> list[Finding]:
    """Whether there is room for checkpoints and data."""
    free = shutil.disk_usage(folder).free
    ok = free > FREE_DISK
    return [Finding("free disk", ok, f"{free / 1e9:.1f} GB", "" if ok else "Free at least 1 GB")]


def read_pins() -> dict[str, str] | None:
    """The versions that the release was packed with (`name==version` lines), or None without a list."""
    source = importlib.resources.files("course_utils") / "pins.txt"
    if not source.is_file():
        return None
    text = source.read_text(encoding="utf-8")
    pairs = (re.split("[#;]", line)[0].partition("==") for line in text.splitlines())
    return {name.strip(): version.strip() for name, _, version in pairs if version}


def _public(version: str) -> str:
    """A version without its local part: 2.13.0+cpu is 2.13.0."""
    return version.split("+")[0].strip()
