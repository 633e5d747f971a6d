"""Landlock: a process gives up all of the file system but a few folders, and signals and sockets to the outside."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from autograder.box import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_create_ruleset, landlock_add_rule, landlock_restrict_self
_PATH_BENEATH = 1
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE
_BITS_BY_ABI = (0, 13, 14, 15, 15, 16)  # how many rights on files each version of the interface knows
_NET_BITS, _SCOPE_BITS = 3, 3  # bind and connect of TCP; abstract sockets and signals


def version() -> int:
    """The kernel's version of the interface, 0 if there is none."""
    try:
        return kernel.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """From now on only these paths exist for this process and its children; needs `no_new_privileges`."""
    abi = version()
    everything = (1 << _BITS_BY_ABI[min(abi, 5)]) - 1
    fields = [everything, _NET_BITS, _SCOPE_BITS][: 1 if abi < 4 else 2 if abi < 6 else 3]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = kernel.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path in readable:
            _allow(ruleset, path, (_EXECUTE | _READ | _LIST) & everything)
        for path in writable:
            _allow(ruleset, path, everything)
        kernel.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not on this machine
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        kernel.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)
