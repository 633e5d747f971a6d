"""The few Linux system calls that Python does not offer, by their C names; failures are `OSError`."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1 << 5, 1 << 12, 1 << 14, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SYS_MOUNT_SETATTR = 442
_CAP_VERSION_3 = 0x20080522
CAP_DAC_READ_SEARCH, _CAP_SETPCAP, CAP_SYS_ADMIN = 2, 8, 21
_LAST_CAP = 40
_MADV_COLLAPSE = 25

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _done(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: object) -> int:
    """A system call by its number."""
    return _done(_libc.syscall(ctypes.c_long(number), *args), f"system call {number}")


def unshare(flags: int) -> None:
    """Leave namespaces for fresh ones."""
    _done(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace."""
    _done(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount something."""
    arguments = [text.encode() or None for text in (source, target, kind)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() or None)
    _done(result, f"mount {kind or source} on {target}")


def make_readonly(target: str) -> None:
    """Make a mount and all mounts below it read-only."""
    attributes = (ctypes.c_uint64 * 4)(MS_RDONLY | MS_NOSUID, 0, 0, 0)
    at_fdcwd, at_recursive = -100, 0x8000
    _done(
        _libc.syscall(
            ctypes.c_long(_SYS_MOUNT_SETATTR), ctypes.c_int(at_fdcwd), target.encode(), ctypes.c_uint(at_recursive),
            ctypes.byref(attributes), ctypes.c_size_t(32),
        ),
        f"read-only {target}",
    )  # fmt: skip


def change_root(new: str) -> None:
    """Make a mount point the root and let go of the old one."""
    os.chdir(new)
    _done(_libc.pivot_root(b".", b"."), "pivot_root")
    _done(_libc.umount2(b".", ctypes.c_int(MNT_DETACH)), "umount")
    os.chdir("/")


def _prctl(option: int, *values: int) -> int:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(_libc.prctl(ctypes.c_int(option), *padded))


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the parent dies."""
    _done(_prctl(_PR_SET_PDEATHSIG, signal_number), "prctl")


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent has died."""
    _done(_prctl(_PR_SET_CHILD_SUBREAPER, 1), "prctl")


def no_new_privileges() -> None:
    """Give up setuid programs for good."""
    _done(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "prctl")


def keep_capabilities() -> None:
    """Keep permitted capabilities over the next change of user."""
    _done(_prctl(_PR_SET_KEEPCAPS, 1), "prctl")


def set_capabilities(kept: tuple[int, ...] = ()) -> None:
    """Give up all capabilities but these; to drop the others for good needs CAP_SETPCAP among those we have."""
    low = sum(1 << capability for capability in kept)
    _capset(low | 1 << _CAP_SETPCAP)
    for capability in range(_LAST_CAP + 1):
        _prctl(_PR_CAPBSET_DROP, capability)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _capset(low)


def _capset(low: int) -> None:
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, 0, 0, 0)  # effective, permitted, inheritable: low words, then high words
    _done(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def use_huge_pages() -> None:
    """Gather this process's own memory in pages of 2 MB, as far as the kernel does that: forks copy a shorter table."""
    huge = 2**21
    with open("/proc/self/maps") as maps:
        for line in maps.readlines():
            fields = line.split()
            if "w" in fields[1] and (len(fields) == 5 or fields[5] == "[heap]"):
                start, end = (int(address, 16) for address in fields[0].split("-"))
                start, end = -(-start // huge) * huge, end // huge * huge
                if start < end:
                    _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), ctypes.c_int(_MADV_COLLAPSE))


def has_capability(capability: int) -> bool:
    """Whether this process has an effective capability."""
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> capability & 1)
