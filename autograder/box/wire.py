"""What passes between a box and the vault: operations by name, with handles in the place of numbers.

A message is a length and a msgpack tree. A tensor's own numbers are in it only where code brings some in
(`torch.tensor([...])`) or reads some out (`.item()`): a request of its own, so that they can be counted.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

import msgpack  # type: ignore[import-untyped]
import torch

from autograder.box.protocol import DTYPES, byte_view

HANDLE, VIEW, NEW, SAME, NUMBERS, DTYPE, DEVICE, FORM, COMPLEX = range(1, 10)
LENGTH = struct.Struct("<I")
Form = tuple[int, ...]  # a shape, or strides
Form3 = tuple[torch.dtype, Form, Form]  # a dtype, a shape and strides
OWN_NUMBERS = 2**32  # from here on a box gives the numbers, below it the vault
MAX_BYTES = 64 * 2**20
CODES = {dtype: code for code, dtype in enumerate(DTYPES)}
FORMS = {
    str(form): form
    for form in (
        torch.strided,
        torch.contiguous_format,
        torch.preserve_format,
        torch.channels_last,
        torch.channels_last_3d,
    )
}


def leaves(value: Any) -> list[Any]:
    """What stands in lists, tuples and dicts, one inside another."""
    found: list[Any] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list | tuple):
            waiting += reversed(item)
        elif isinstance(item, dict):
            waiting += reversed(item.values())
        else:
            found.append(item)
    return found


class WireError(Exception):
    """A message that is none."""


def handle(number: int) -> msgpack.ExtType:
    """A tensor in the vault."""
    return msgpack.ExtType(HANDLE, struct.pack("<Q", number))


def view(number: int, shape: Form, strides: Form, offset: int) -> msgpack.ExtType:
    """A view of a tensor in the vault, which the box has worked out for itself."""
    return msgpack.ExtType(VIEW, struct.pack(f"<Qq{2 * len(shape)}q", number, offset, *shape, *strides))


def view_of(data: bytes) -> tuple[int, Form, Form, int]:
    """The number of the tensor, and shape, strides and offset of the view."""
    number, offset = struct.unpack_from("<Qq", data)
    sizes = struct.unpack_from(f"<{(len(data) - 16) // 8}q", data, 16)
    half = len(sizes) // 2
    return number, sizes[:half], sizes[half:], offset


def same(place: int) -> msgpack.ExtType:
    """What an operation in place gives back: one of the values that it was given."""
    return msgpack.ExtType(SAME, bytes((place,)))


def new(number: int, tensor: torch.Tensor) -> msgpack.ExtType:
    """A tensor in the vault that the box has not met: its form with it."""
    form = (number, tensor.storage_offset(), CODES[tensor.dtype], tensor.dim(), *tensor.shape, *tensor.stride())
    return msgpack.ExtType(NEW, struct.pack(f"<QqBB{2 * tensor.dim()}q", *form))


def form_of(data: bytes) -> tuple[int, torch.dtype, Form, Form, int]:
    """Handle, dtype, shape, strides and offset of a new tensor."""
    number, offset, code, dim = struct.unpack_from("<QqBB", data)
    sizes = struct.unpack_from(f"<{2 * dim}q", data, 18)
    return number, DTYPES[code], sizes[:dim], sizes[dim:], offset


def expected(number: int, dtype: torch.dtype, shape: Form, strides: Form) -> list[Any]:
    """What a result will be that the box does not wait for."""
    return [number, CODES[dtype], shape, strides]


def numbers(tensor: torch.Tensor) -> msgpack.ExtType:
    """A small tensor with its numbers."""
    tensor = tensor.detach()
    head = struct.pack(f"<BB{tensor.dim()}Q", CODES[tensor.dtype], tensor.dim(), *tensor.shape)
    return msgpack.ExtType(NUMBERS, head + byte_view(tensor).numpy().tobytes())


def tensor_of(data: bytes) -> torch.Tensor:
    """The tensor again; `WireError` where its numbers and its shape do not fit."""
    try:
        code, dim = struct.unpack_from("<BB", data)
        shape, body = struct.unpack_from(f"<{dim}Q", data, 2), bytearray(data[2 + 8 * dim :])
        count = 1
        for length in shape:
            count *= length
        if count * DTYPES[code].itemsize != len(body):
            raise WireError("a tensor is not as long as it says")
        flat = torch.frombuffer(body, dtype=torch.uint8) if body else torch.empty(0, dtype=torch.uint8)
        return flat.view(DTYPES[code]).reshape(shape)
    except (struct.error, IndexError, RuntimeError):
        raise WireError("a tensor that is none") from None


def plain(value: Any) -> Any:
    """What msgpack asks for a value that both sides write alike."""
    if isinstance(value, torch.dtype) and value in CODES:
        return msgpack.ExtType(DTYPE, bytes((CODES[value],)))
    if isinstance(value, torch.layout | torch.memory_format) and str(value) in FORMS:
        return msgpack.ExtType(FORM, str(value).encode())
    if isinstance(value, complex):
        return msgpack.ExtType(COMPLEX, struct.pack("<dd", value.real, value.imag))
    raise TypeError(f"a {type(value).__name__} cannot be part of a watched operation")


def lifted(code: int, data: bytes) -> Any:
    """The value that `plain` wrote."""
    if code == DTYPE:
        return DTYPES[data[0]]
    if code == FORM:
        return FORMS[data.decode()]
    if code == COMPLEX:
        return complex(*struct.unpack("<dd", data))
    raise WireError(f"an item of unknown kind {code}")


def send(connection: socket.socket, data: bytes) -> None:
    """One message, whole."""
    connection.sendall(LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> bytes | None:
    """One message; None where there is no more, or what comes is none."""
    head = exactly(connection, LENGTH.size)
    if head is None:
        return None
    (length,) = LENGTH.unpack(head)
    return exactly(connection, length) if length <= MAX_BYTES else None


def exactly(connection: socket.socket, count: int) -> bytes | None:
    """So many bytes; None where they do not come."""
    parts: list[bytes] = []
    while count:
        try:
            part = connection.recv(min(count, 2**20))
        except OSError:
            return None
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
