"""A seccomp filter that refuses the system calls no answer needs: a second wall behind the namespaces."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import NamedTuple


class _Machine(NamedTuple):
    audit: int  # what the kernel calls the architecture
    clone: int
    mmap: int
    read_with_flags: int  # preadv2
    execute: tuple[int, ...]  # execve, execveat
    refused: tuple[int, ...]


# The same on every machine: io_uring, the newer mount calls, pidfd_getfd, memfd_secret, cachestat.
_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447, 451)
_MACHINES = {  # both lists in the same order
    "x86_64": _Machine(
        0xC000003E, 56, 9, 327, (59, 322),
        (
            41, 53, 54,  # socket, socketpair, setsockopt: their buffers are charged to no process; pipes remain
            275, 276, 278,  # splice, tee, vmsplice: a pipe would hold pages, huge ones too
            112,  # setsid: a box is one session, and gets the processor's share of one
            101, 310, 311, 312,  # ptrace, process_vm_readv, process_vm_writev, kcmp
            272, 308, 165, 166, 155, 161,  # unshare, setns, mount, umount2, pivot_root, chroot
            248, 249, 250,  # add_key, request_key, keyctl
            321, 298, 323, 300,  # bpf, perf_event_open, userfaultfd, fanotify_init
            319, 29, 64, 68, 240,  # memfd_create, shmget, semget, msgget, mq_open: memory outside the limits
            303, 304,  # name_to_handle_at, open_by_handle_at
            175, 176, 313, 246, 320, 169, 167, 168,  # modules, kexec, reboot, swap
            163, 179, 103, 153, 170, 171,  # acct, quotactl, syslog, vhangup, sethostname, setdomainname
            164, 227, 305, 159,  # clocks
            135, 154, 172, 173,  # personality, modify_ldt, iopl, ioperm
            27, 221, 187,  # mincore, fadvise64, readahead: which files' pages are in memory is seen by all boxes
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7, 220, 222, 286, (221, 281),
        (
            198, 199, 208,
            76, 77, 75,
            157,
            117, 270, 271, 272,
            97, 268, 40, 39, 41, 51,
            217, 218, 219,
            280, 241, 282, 262,
            279, 194, 190, 186, 180,
            264, 265,
            105, 106, 273, 104, 294, 142, 224, 225,
            89, 60, 116, 58, 161, 162,
            170, 112, 266, 171,
            92,
            232, 223, 213,
        ),
    ),
}  # fmt: skip

_CLONE3 = 435
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS
_NO_WAIT = 0x08  # RWF_NOWAIT: reads what is in memory, and tells what is not
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# Offsets in struct seccomp_data.
_NUMBER, _ARCH, _FIRST_ARGUMENT, _FOURTH_ARGUMENT, _SIXTH_ARGUMENT = 0, 4, 16, 40, 56
_PR_SET_SECCOMP, _FILTER = 22, 2


def supported() -> bool:
    """Whether the filter is written for this machine."""
    return platform.machine() in _MACHINES


def refuse_dangerous_calls(programs: bool = True) -> None:
    """Put the filter on this process for good; needs `no_new_privileges`. Refused calls fail with EPERM.

    Without `programs` it can start none: not a Python that has what was taken out of this one.
    """
    machine = _MACHINES[platform.machine()]
    if not programs:
        machine = machine._replace(refused=machine.refused + machine.execute)
    program = b"".join(struct.pack("<HBBI", *instruction) for instruction in _program(machine))
    code = ctypes.create_string_buffer(program)
    # struct sock_fprog: a short, padding, a pointer
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(header)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(buffer), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _program(machine: _Machine) -> list[tuple[int, int, int, int]]:
    """BPF instructions (code, jump if true, jump if false, operand)."""
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3),  # its flags are out of reach: the C library falls back to clone
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for number in machine.refused + _EVERYWHERE:
        program += [(_EQUAL, 0, 1, number), refuse]
    program += [
        (_EQUAL, 0, 4, machine.mmap),
        (_LOAD, 0, 0, _FOURTH_ARGUMENT),
        (_AND, 0, 0, _SHARED_ANONYMOUS),
        (_EQUAL, 0, 1, _SHARED_ANONYMOUS),  # its pages outlive their place in the tables that we count
        refuse,
        (_EQUAL, 0, 3, machine.read_with_flags),
        (_LOAD, 0, 0, _SIXTH_ARGUMENT),
        (_ANY_BIT, 0, 1, _NO_WAIT),
        refuse,
        (_EQUAL, 0, 3, machine.clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        refuse,
        (_RETURN, 0, 0, _ALLOW),
    ]
    return program
