"""The ways to put walls around a zygote, what each guarantees, and which of them work on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.box import kernel, landlock, seccomp
from autograder.box.jail import USERS, VIEW, Plan
from autograder.judge.verdicts import Infrastructure
from autograder.places import COURSE, PACKAGE, THE_COURSE, package_path

BOX_MODULES = (
    *("export", "held", "held_numpy", "jail", "kernel", "landlock", "no_gradients", "operations", "ours", "peers"),
    *("printed", "protocol", "seccomp", "server", "settings", "stand_ins", "vault", "wire", "zygote"),
)
SECRETS = ("autograder", "solutions", "assignments", "examples", "tests")  # beside course_utils, in a tree or installed
ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", *ETC)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "student",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "COURSE_GRADING": "1",  # the notebook's own `grader` rests
}
# The zygote's process imports the box's modules and nothing else of this package, whose own __init__ is the judge's.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from autograder.box.zygote import main; main(int(sys.argv[2]))"
_BARE_BOOT = """
import sys, types
for name, path in (("autograder", []), ("autograder.box", [sys.argv[1]])):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = path
from autograder.box.zygote import main
main(int(sys.argv[2]))
"""


@dataclass(frozen=True)
class Backend:
    """One kind of walls."""

    name: str
    summary: str
    command: Callable[[Plan, int], list[str]]
    guarantees: tuple[str, ...]


def plan_for(name: str) -> Plan:
    """The walls of a new zygote."""
    mounts = kernel.has_capability(kernel.CAP_SYS_ADMIN)
    privileged = os.getuid() == 0 and (mounts or name == "process")
    readable = _readable()
    empty = str(PACKAGE / "box" / "__init__.py")
    view = [(empty, "autograder/__init__.py"), (empty, "autograder/box/__init__.py")]
    view += [_shown(package) for package in THE_COURSE.box_packages]
    view += [(str(PACKAGE / "box" / f"{module}.py"), f"autograder/box/{module}.py") for module in BOX_MODULES]
    return Plan(
        backend=name,
        privileged=privileged,
        first_user=free_users(),
        readable=readable,
        hidden=_hidden(readable),
        view=tuple(view),
        ours=THE_COURSE.box_packages,
        home="/box" if any(path.startswith("/tmp/") for path in readable) else "/tmp",
        scratch=_scratch(view) if name == "process" else "",
    )


def _shown(package: str) -> tuple[str, str]:
    """A package of ours, and its place in the view."""
    path = package_path(package)
    return str(path), package.replace(".", "/") + (".py" if path.is_file() else "")


def launch(plan: Plan, control: int, errors: int) -> subprocess.Popen[bytes]:
    """Start a zygote's process; it waits for its plan on `control` and writes its own troubles to `errors`."""
    return subprocess.Popen(
        BACKENDS[plan.backend].command(plan, control),
        env=ENVIRONMENT,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=[control],
        start_new_session=True,
    )


def _readable() -> tuple[str, ...]:
    """What a box may read of the host: the system's programs and libraries, and Python with its packages."""
    paths = {path for path in SYSTEM if os.path.lexists(path)}
    paths |= {sys.prefix, sys.base_prefix, sys.exec_prefix}
    paths |= {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    paths |= {os.path.realpath(path) for path in paths}
    if "/" in paths:
        raise Infrastructure("Python is installed at the root of the file system: nothing could be hidden from a box.")
    return tuple(sorted(path for path in paths if not any(path.startswith(other + "/") for other in paths)))


def _hidden(readable: tuple[str, ...]) -> tuple[str, ...]:
    """Where our secrets would show up below those paths: they do when this package is installed and not a tree."""
    secrets = [str(PACKAGE.parent / name) for name in SECRETS if (PACKAGE.parent / name).is_dir()]
    secrets += [str(COURSE)] if COURSE != PACKAGE.parent else []
    found = []
    for path in readable:
        real = os.path.realpath(path)
        if not os.path.islink(path):
            found += [path + secret.removeprefix(real) for secret in secrets if secret.startswith(real + "/")]
    return tuple(found)


def free_users() -> int:
    """The first of `USERS` user ids that no person has: from high up, or below 65536 in a small user namespace."""
    with open("/proc/self/uid_map") as file:
        highest = max(int(inner) + int(length) for inner, _, length in map(str.split, file))
    low, high = (10**9, 2 * 10**9) if highest > 2 * 10**9 else (20_000, 60_000)
    return low + os.getpid() * USERS % (high - low)


def _scratch(view: list[tuple[str, str]]) -> str:
    """A folder with the view as symbolic links, and room for the boxes' files; the zygote removes it."""
    folder = tempfile.mkdtemp(prefix="autograder-boxes-")
    os.chmod(folder, 0o711)
    for source, place in view:
        link = Path(f"{folder}{VIEW}/{place}")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source)
    return folder


def _python(view: str, control: int) -> list[str]:
    return [sys.executable, "-I", "-B", "-c", _BOOT, view, str(control)]


def _bwrap(plan: Plan, control: int) -> list[str]:
    if plan.privileged:
        command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    else:
        command = ["bwrap", "--unshare-all", "--uid", "0", "--gid", "0"]
    command += ["--cap-add", "ALL", "--new-session"]
    places = [*plan.readable, *(f"{VIEW}/{place}" for _, place in plan.view)]
    for folder in sorted({str(folder) for place in places for folder in Path(place).parents if str(folder) != "/"}):
        command += ["--perms", "0755", "--dir", folder]
    for path in plan.readable:
        command += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for source, place in plan.view:
        command += ["--ro-bind", source, f"{VIEW}/{place}"]
    for path in plan.hidden:
        command += ["--tmpfs", path, "--remount-ro", path]
    command += ["--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc", "--tmpfs", plan.home, "--remount-ro", "/"]
    return [*command, "--chdir", plan.home, "--", *_python(VIEW, control)]


def _namespaces(plan: Plan, control: int) -> list[str]:
    return [sys.executable, "-I", "-B", "-c", _BARE_BOOT, str(PACKAGE / "box"), str(control)]


def _process(plan: Plan, control: int) -> list[str]:
    return _python(f"{plan.scratch}{VIEW}", control)


def _extras() -> tuple[str, ...]:
    """The second walls that this kernel offers to any backend."""
    found = []
    if landlock.version():
        found.append(f"Landlock (version {landlock.version()}): no file outside the view, even if a mount were missed")
    if seccomp.supported():
        found.append("seccomp: no tracing, no new namespaces or mounts, no sockets, no memory that no limit counts")
    return tuple(found)


_WALLS = (
    "no network, not even the host's loopback",
    "reads only the system's programs, Python's packages and course_utils: no suites, solutions or submissions",
    "sees and signals only its own processes; all of them die with it, orphans included",
    "files only in a small memory file system of its own, which vanishes with it",
    "a user without rights, a clean environment, no descriptor but its channel",
    "limits on time, memory, processes, file size, open files and output",
)

BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("bwrap", "bubblewrap around the zygote, fresh namespaces around each box", _bwrap, _WALLS),
        Backend("namespaces", "namespaces of our own making around the zygote and each box", _namespaces, _WALLS),
        Backend(
            "process",
            "a plain process with limits: for code you would run yourself",
            _process,
            (
                "limits on time, memory, processes, file size, open files and output",
                "all its processes are hunted down when it ends",
                "a clean environment, no descriptor but its channel",
                "as root: a user of its own without rights",
                "without Landlock and seccomp it can read what its user can read, and use the network",
            ),
        ),
    )
}


def guarantees(name: str) -> tuple[str, ...]:
    """What a backend promises on this machine, for `autograder doctor`."""
    return BACKENDS[name].guarantees + _extras()
