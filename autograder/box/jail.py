"""The walls: an outer jail around the zygote, and an inner one around each box that the zygote forks.

Runs on the box's side and imports no more than it needs: the outer jail is built before torch is imported.
"""

from __future__ import annotations

import math
import os
import resource
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.box import kernel, landlock, seccomp

VIEW = "/view"  # where a jail shows course_utils and the box's own modules
USERS = 1000  # of one zygote
_NOBODY = 65534
_LIBRARIES = 4 * 2**30  # address space to allow for when it cannot be read
_NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_DEVICES = ("null", "full", "random", "urandom")  # not zero: a shared mapping of it is memory that nobody counts


@dataclass(frozen=True)
class Plan:
    """What the judge tells a zygote about its walls."""

    backend: str  # bwrap, namespaces or process
    privileged: bool  # root: boxes get a user of their own; else user namespaces are used
    first_user: int  # the boxes' users, if root
    readable: tuple[str, ...]  # the host's paths that a box may read
    hidden: tuple[str, ...]  # folders below those that it may not
    view: tuple[tuple[str, str], ...]  # the host's file or folder, and its place below VIEW
    ours: tuple[str, ...] = ()  # the packages in the view that are kept as we wrote them
    home: str = "/tmp"  # where a box has its files: a place that hides nothing readable
    scratch: str = ""  # a folder of the host for the view and the boxes' files, where nothing can be mounted


def enter_outer(plan: Plan) -> None:
    """Build the outer jail with namespaces and go on in it as its first process."""
    flags = _NAMESPACES | kernel.CLONE_NEWPID
    user, group = os.getuid(), os.getgid()
    if plan.privileged:
        kernel.unshare(flags)
    else:
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        process = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
        _map_user(process, f"0 {user} 1", f"0 {group} 1")
        os.close(process)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent(signal.SIGKILL)
    root = "/sys"  # any folder that we need nothing from
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", _QUIET, "mode=755")
    for path in plan.readable:
        _show(path, root + path)
    for source, place in plan.view:
        _show(source, f"{root}{VIEW}/{place}")
    for path in plan.hidden:
        kernel.mount("tmpfs", root + path, "tmpfs", _QUIET | kernel.MS_RDONLY, "mode=755")
    _make_devices(root)
    for folder in ("/proc", plan.home):
        os.mkdir(root + folder)
    kernel.mount("proc", root + "/proc", "proc", _QUIET | kernel.MS_NOEXEC)
    kernel.mount("tmpfs", root + plan.home, "tmpfs", _QUIET, "mode=1777")
    kernel.change_root(root)
    kernel.mount("none", "/", flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _QUIET)
    os.chdir(plan.home)


def _show(source: str, target: str) -> None:
    """The host's file, folder or symbolic link at a place in the new root, read-only."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        open(target, "x").close()
    kernel.mount(source, target, flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.make_readonly(target)


def _make_devices(root: str) -> None:
    os.makedirs(root + "/dev/shm")
    for name in _DEVICES:
        target = f"{root}/dev/{name}"
        open(target, "x").close()
        kernel.mount(f"/dev/{name}", target, flags=kernel.MS_BIND)
    os.symlink("/proc/self/fd", root + "/dev/fd")


def _map_user(process: int, users: str, groups: str) -> None:
    """Name the users of a new namespace, through the folder of this process in /proc."""
    for name, text in (("setgroups", "deny"), ("uid_map", users), ("gid_map", groups)):
        descriptor = os.open(name, os.O_WRONLY, dir_fd=process)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def fork_first_process(own_namespace: int | None) -> int:
    """Fork; with a descriptor of our own process namespace, the child is the first process of a fresh one."""
    if own_namespace is not None:
        kernel.setns(own_namespace, kernel.CLONE_NEWPID)
        kernel.unshare(kernel.CLONE_NEWPID)
    return os.fork()


def enter_inner(plan: Plan, limits: dict[str, float], serial: int) -> None:
    """Turn a fresh fork of the zygote into a box; afterwards it may run anything."""
    os.setsid()
    home, writable = plan.home, [plan.home, "/dev/shm"]
    readable = ["/"]
    user = plan.first_user + serial % USERS
    kept: tuple[int, ...] = ()
    own_tasks = 0
    if plan.backend == "process":
        home = f"{plan.scratch}/{serial}"
        os.mkdir(home, 0o700)
        writable, readable = [home], [*without(plan.readable, plan.hidden), f"{plan.scratch}{VIEW}"]
        readable += [source for source, _ in plan.view]
        if plan.privileged:
            os.chown(home, user, user)
            kept = () if _readable_by_all(plan.readable) else (kernel.CAP_DAC_READ_SEARCH,)
        else:
            own_tasks = _count_tasks(os.getuid())
    elif plan.privileged:
        _fresh_mounts(home, int(limits["tmpfs"]))
    else:
        process = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)  # out of reach behind the box's own /proc
        _fresh_mounts(home, int(limits["tmpfs"]))
        _become_nobody(process)
    if plan.privileged:
        _become(user, kept)
    kernel.die_with_parent(signal.SIGKILL)
    _set_limits(limits, own_tasks)
    kernel.no_new_privileges()
    if landlock.version():
        landlock.restrict(readable, [*writable, *(f"/dev/{name}" for name in _DEVICES)])
    elif kept:
        raise PermissionError("other users cannot read this Python environment, and the kernel has no Landlock")
    if seccomp.supported():
        seccomp.refuse_dangerous_calls(programs=bool(limits["autograd"]))
    os.chdir(home)
    os.environ.update(HOME=home, TMPDIR=home, MPLCONFIGDIR=home)


def _fresh_mounts(home: str, size: int) -> None:
    """Namespaces of the box's own, with empty folders and a view of its own processes only."""
    kernel.unshare(_NAMESPACES)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", home, "tmpfs", _QUIET, f"mode=1777,size={size},nr_inodes=4096")
    kernel.mount("tmpfs", "/dev/shm", "tmpfs", _QUIET, f"mode=1777,size={size // 4},nr_inodes=256")
    if os.path.exists("/dev/zero"):
        kernel.mount("/dev/null", "/dev/zero", flags=kernel.MS_BIND)
    try:
        kernel.mount("proc", "/proc", "proc", _QUIET | kernel.MS_NOEXEC | kernel.MS_RDONLY)
    except OSError:  # in some containers; then the box sees no processes at all
        kernel.mount("tmpfs", "/proc", "tmpfs", _QUIET | kernel.MS_RDONLY, "size=4k")


def _become(user: int, kept: tuple[int, ...]) -> None:
    """From root to a user that nobody else is."""
    kernel.keep_capabilities()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    kernel.set_capabilities(kept)


def _become_nobody(process: int) -> None:
    """To a user namespace with one powerless user; its processes are counted apart."""
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    _map_user(process, f"{_NOBODY} {user} 1", f"{_NOBODY} {group} 1")
    os.close(process)
    kernel.set_capabilities()


def _set_limits(limits: dict[str, float], own_tasks: int) -> None:
    with open("/proc/self/statm" if os.path.exists("/proc/self/statm") else os.devnull) as file:
        pages = int((file.read().split() or ["0"])[0])
    address_space = pages * resource.getpagesize() or _LIBRARIES
    for kind, value in (
        (resource.RLIMIT_AS, address_space + int(limits["memory"])),
        (resource.RLIMIT_CPU, math.ceil(limits["cpu"])),
        (resource.RLIMIT_NPROC, own_tasks + int(limits["processes"])),
        (resource.RLIMIT_FSIZE, int(limits["file_size"])),
        (resource.RLIMIT_NOFILE, int(limits["open_files"])),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def _count_tasks(user: int) -> int:
    """Processes and threads that a user has now: the kernel's limit counts them all."""
    count = 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == user:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
        except OSError:  # gone meanwhile
            continue
    return count


def without(paths: Iterable[str], hidden: Iterable[str]) -> list[str]:
    """The paths, those that hold a hidden one replaced by their other entries; no links, which may lead back."""
    result = []
    for path in paths:
        if os.path.islink(path):
            continue
        inside = [secret for secret in hidden if secret == path or secret.startswith(path.rstrip("/") + "/")]
        if path in inside:
            continue
        entries = [f"{path.rstrip('/')}/{name}" for name in os.listdir(path)] if inside else []
        result += without(entries, inside) if inside else [path]
    return result


def _readable_by_all(paths: Iterable[str]) -> bool:
    """Whether a user without rights reaches these paths."""
    for path in paths:
        step = os.path.realpath(path)
        while step != "/":
            if not os.stat(step).st_mode & 0o001 and os.path.isdir(step):
                return False
            step = os.path.dirname(step)
    return True
