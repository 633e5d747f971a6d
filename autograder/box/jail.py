"""The walls: an outer jail around the zygote, and an inner one around each box that the zygote forks.

Runs on the box's side and imports no more than it needs: the outer jail is built before torch is imported.
"""

from __future__ import annotations

import math
import os
import resource
import signal
from dataclasses import dataclass

from autograder.box import kernel, landlock, seccomp

VIEW = "/view"  # where a jail shows course_utils and the box's own modules
_BOX_USER = 65534
_NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True)
class Plan:
    """What the judge tells a zygote about its walls."""

    backend: str  # bwrap, namespaces or process
    privileged: bool  # root that may mount: boxes get a user of their own; else user namespaces are used
    readable: tuple[str, ...]  # host paths that a box may read
    hidden: tuple[str, ...]  # paths below those that it may not
    view: str  # where the view lies on the host
    scratch: str  # an empty folder of the host: mount point, or the place of a box's files if there are no mounts
    base_user: int  # boxes of a privileged zygote get this user id and the following


def enter_outer(plan: Plan) -> None:
    """Build the outer jail with namespaces and go on in it as its first process."""
    flags = _NAMESPACES | kernel.CLONE_NEWPID
    user, group = os.getuid(), os.getgid()
    if plan.privileged:
        kernel.unshare(flags)
    else:
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        _map_user("/proc/self", f"0 {user} 1", f"0 {group} 1")
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent(signal.SIGKILL)
    root = plan.scratch
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", _QUIET, "mode=755")
    for path in plan.readable:
        _show(path, root + path)
    _show(plan.view, root + VIEW)
    for path in plan.hidden:
        kernel.mount("tmpfs", root + path, "tmpfs", _QUIET | kernel.MS_RDONLY, "mode=755")
    _make_devices(root)
    for folder in ("/proc", "/tmp"):
        os.mkdir(root + folder)
    kernel.mount("proc", root + "/proc", "proc", _QUIET | kernel.MS_NOEXEC)
    kernel.mount("tmpfs", root + "/tmp", "tmpfs", _QUIET, "mode=1777")
    kernel.change_root(root)
    kernel.mount("none", "/", flags=kernel.MS_BIND | 32 | kernel.MS_RDONLY | _QUIET)  # 32: remount
    os.chdir("/tmp")


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


def _map_user(process: str, users: str, groups: str) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", users), ("gid_map", groups)):
        with open(f"{process}/{name}", "w") as file:
            file.write(text)


def fork_first_process(own_namespace: int | None) -> int:
    """Fork; with a descriptor of our own process namespace, the child is the first process of a fresh one."""
    if own_namespace is not None:
        kernel.setns(own_namespace, kernel.CLONE_NEWPID)
        kernel.unshare(kernel.CLONE_NEWPID)
    return os.fork()


def enter_inner(plan: Plan, limits: dict[str, float], serial: int) -> None:
    """Turn a fresh fork of the zygote into a box; afterwards it may run anything."""
    os.setsid()
    user = plan.base_user + serial % 1000
    if plan.backend == "process":
        home = f"{plan.scratch}/{serial}"
        os.mkdir(home, 0o700)
        if plan.privileged:
            os.chown(home, user, user)
    else:
        home = "/tmp"
        _fresh_mounts(int(limits["tmpfs"]))
    _set_limits(plan, limits, user)
    kept: tuple[int, ...] = ()
    if plan.privileged:
        kept = (kernel.CAP_DAC_READ_SEARCH,) if plan.backend == "process" and not _readable_by_all(plan) else ()
        kernel.keep_capabilities()
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        kernel.set_capabilities(kept)
    elif plan.backend != "process":
        _become_nobody()
    kernel.no_new_privileges()
    if landlock.version():
        system = ["/"] if plan.backend != "process" else [*_unhidden(plan), plan.view]
        landlock.restrict(system, [home, "/dev/shm", *(f"/dev/{name}" for name in _DEVICES)])
    elif kept:
        raise PermissionError("the environment is not readable by other users, and the kernel has no Landlock")
    if seccomp.supported():
        seccomp.refuse_dangerous_calls()
    os.chdir(home)
    os.environ.update(HOME=home, TMPDIR=home, MPLCONFIGDIR=home)


def _fresh_mounts(size: int) -> None:
    """Namespaces of the box's own, with empty files and its own view of processes."""
    before = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
    kernel.unshare(_NAMESPACES)
    os.close(before)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", "/tmp", "tmpfs", _QUIET, f"mode=1777,size={size},nr_inodes=4096")
    kernel.mount("tmpfs", "/dev/shm", "tmpfs", _QUIET, f"mode=1777,size={size // 4},nr_inodes=256")


def _become_nobody() -> None:
    raise NotImplementedError


def _set_limits(plan: Plan, limits: dict[str, float], user: int) -> None:
    raise NotImplementedError


def _readable_by_all(plan: Plan) -> bool:
    raise NotImplementedError


def _unhidden(plan: Plan) -> list[str]:
    raise NotImplementedError
