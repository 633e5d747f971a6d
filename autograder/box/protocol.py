"""The data that may pass between judge and box, as bytes; both sides import this file.

A frame is a header (magic, nonce, sequence number, two lengths), a msgpack tree, and the raw bytes of the tree's
tensors and NumPy arrays one after the other. Containers are msgpack arrays that begin with a tag, so lists, tuples,
dicts and sets keep their kind. Everything is capped, and whatever does not fit raises `ProtocolError` and nothing else.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgpack  # type: ignore[import-untyped]
import numpy as np
import torch
from torch import Tensor

from autograder.box.ours import is_ours

HEADER = struct.Struct("<4s8sQIQ")  # magic, nonce, sequence, bytes of the tree, bytes of the tensors
MAGIC = b"BOX1"
MAX_ITEM = 1024  # bytes of a number, name or shape; Python prints an int of that size without complaint

DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
    torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip
_CODE = {dtype: code for code, dtype in enumerate(DTYPES)}
ARRAY_DTYPES = tuple(
    np.dtype(name)
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                 "uint64", "bool", "complex64", "complex128")
)  # fmt: skip
_ARRAY_CODE = {dtype: code for code, dtype in enumerate(ARRAY_DTYPES)}
MAX_AXES = 32
KINDS = ("callable", "class", "module", "object")

_LIST, _TUPLE, _DICT, _SET = range(4)
_TENSOR, _INT, _COMPLEX, _HANDLE, _NAME, _FUNCTION, _DTYPE, _ARRAY, _NUMPY_SCALAR, _KEPT = range(1, 11)
_FUNCTION_NAME = re.compile(r"([A-Za-z]\w*(?:\.[A-Za-z]\w*)*):[A-Za-z]\w*", re.ASCII)
_HASHABLE = (type(None), bool, int, float, str)
_FORMS = [struct.Struct(f"<B{axes}Q") for axes in range(MAX_AXES + 1)]  # of a tensor: the code of its dtype, its shape
_QUICK = {dtype: code for dtype, code in _CODE.items() if not dtype.is_complex and dtype != torch.bfloat16}


class ProtocolError(Exception):
    """Bytes that are no message, or a value that may not pass."""


@dataclass(frozen=True, slots=True)
class Handle:
    """An object that stays in the box, by its number."""

    id: int
    kind: str


@dataclass(frozen=True, slots=True)
class Name:
    """An object of the student's, by its name in the notebook."""

    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A module-level function of ours, as "course_utils.checking.raises:raises_value_error"."""

    path: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor in the vault, by its number, with its form."""

    number: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Caps:
    """How large a message may be, and whether it may name things (only the judge does)."""

    tree: int
    tensors: int
    names: bool
    count: int = 10_000  # tensors and arrays in one message, and entries of one dict or set
    items: int = 2**62  # in all lists, dicts and sets together
    numbers: int = 2**62  # in all tensors and arrays together: what a byte each costs here is eight there
    depth: int = 48


TO_BOX = Caps(tree=64 * 2**20, tensors=2**30, names=True)
TO_JUDGE = Caps(  # a result and what it comes in
    tree=2 * 2**20, tensors=64 * 2**20, names=False, items=250_000, numbers=4 * 2**20
)


class Header(NamedTuple):
    """What stands before a frame's body."""

    nonce: bytes
    sequence: int
    tree: int
    tensors: int

    @property
    def body(self) -> int:
        """Bytes that follow the header."""
        return self.tree + self.tensors


def read_header(data: bytes | bytearray, caps: Caps) -> Header:
    """The header of a frame, its lengths held against the caps."""
    if len(data) < HEADER.size:
        raise ProtocolError("the frame is shorter than its header")
    magic, nonce, sequence, tree, tensors = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ProtocolError("the frame does not begin as one")
    if tree > caps.tree or tensors > caps.tensors:
        raise ProtocolError(f"the message is too large ({tree} + {tensors} bytes)")
    return Header(nonce, sequence, tree, tensors)


def pack(value: Any, nonce: bytes, sequence: int, caps: Caps) -> bytes:
    """One frame; tensors are detached and copied."""
    packer = _Packer(caps)
    try:
        tree = msgpack.packb(packer.lower(value, 0), unicode_errors="replace", strict_types=True)
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        raise ProtocolError(f"the message cannot be written: {error}") from None
    if len(tree) > caps.tree or packer.size > caps.tensors:
        raise ProtocolError(f"the message is too large ({len(tree)} + {packer.size} bytes)")
    return b"".join((HEADER.pack(MAGIC, nonce, sequence, len(tree), packer.size), tree, *packer.buffers))


def unpack(frame: bytes | bytearray, caps: Caps) -> tuple[Header, Any, list[Tensor]]:
    """The header, the value, and the value's tensors in the order in which they stand in it."""
    header = read_header(frame, caps)
    if len(frame) != HEADER.size + header.body:
        raise ProtocolError("the frame is not as long as it says")
    middle = HEADER.size + header.tree
    try:
        tree = msgpack.unpackb(
            memoryview(frame)[HEADER.size : middle],
            use_list=True,
            max_map_len=0,
            max_bin_len=0,
            max_ext_len=MAX_ITEM,
            ext_hook=_item,
        )
        unpacker = _Unpacker(frame if type(frame) is bytearray else bytearray(frame), middle, caps)
        value = unpacker.lift(tree, 0)
    except ProtocolError:
        raise
    except Exception as error:  # a decoder of untrusted bytes has one way to fail
        raise ProtocolError(f"the message cannot be read: {type(error).__name__}") from None
    if unpacker.cursor != len(frame):
        raise ProtocolError("bytes are left over behind the last tensor")
    return header, value, unpacker.tensors


def _item(code: int, data: bytes) -> msgpack.ExtType:
    """An item of a kind of ours, whose code and data are what they should be; msgpack looks at them at length."""
    return tuple.__new__(msgpack.ExtType, (code, data))


def plain(tensor: Tensor) -> Tensor:
    """The same values as a dense, contiguous `torch.Tensor` in main memory, whatever subclass lies about them."""
    if type(tensor) is Tensor and tensor.is_cpu and tensor.layout is torch.strided and not tensor.is_complex():
        return tensor.detach().resolve_neg().contiguous()
    with torch._C.DisableTorchFunctionSubclass():
        if type(tensor) is not Tensor:
            tensor = torch.Tensor.as_subclass(tensor, Tensor)
        tensor = torch.Tensor.detach(tensor)
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        if tensor.device.type == "meta":
            raise ProtocolError("a tensor on the meta device has no values")
        return tensor.cpu().resolve_conj().resolve_neg().contiguous()


def raw_bytes(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor, not copied."""
    return byte_view(tensor).numpy().data if tensor.numel() else memoryview(b"")


def byte_view(tensor: Tensor) -> Tensor:
    """The bytes of a tensor as a flat one; it is copied only where its numbers do not stand side by side in memory."""
    flat = tensor.contiguous().view(-1)
    if flat.stride(0) != 1:  # one number counts as contiguous, whatever it is a view of
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8)


def check_dtype(array: np.ndarray) -> np.ndarray:
    """The array, if it is one of numbers or booleans."""
    if array.dtype.newbyteorder("=") not in _ARRAY_CODE:
        raise ProtocolError(f"arrays of dtype {array.dtype} cannot pass: only numbers and booleans can")
    return array


def plain_array(array: np.ndarray) -> np.ndarray:
    """The same values as a contiguous `np.ndarray` in this machine's byte order, whatever subclass it is."""
    array = check_dtype(np.asarray(array))
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=None)


class _Packer:
    """Turns a value into msgpack's types and gathers the tensors' bytes."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.buffers: list[memoryview] = []
        self.size = 0
        self.numbers = 0

    def lower(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str or kind is float or kind is bool or value is None:
            return value
        if kind is int:
            if -(2**63) <= value < 2**63:
                return value
            length = value.bit_length() // 8 + 1
            return self._ext(_INT, value.to_bytes(length, "little", signed=True))
        if depth >= self.caps.depth:
            raise ProtocolError(f"the value is nested deeper than {self.caps.depth} levels")
        depth += 1
        if kind is list:
            return [_LIST, *[self.lower(item, depth) for item in value]]
        if kind is tuple:
            return [_TUPLE, *[self.lower(item, depth) for item in value]]
        if kind is dict:
            self._hold(len(value))
            flat: list[Any] = [_DICT]
            for key, item in value.items():
                flat += (self._key(key), self.lower(item, depth))
            return flat
        if kind is set:
            self._hold(len(value))
            return [_SET, *[self._key(item) for item in value]]
        if kind is Tensor and value.is_cpu and value.layout is torch.strided and value.dtype in _QUICK:
            return self._numbers(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return self._array(_ARRAY, value)
        if isinstance(value, np.generic):
            return self._array(_NUMPY_SCALAR, np.asarray(value))
        return self._special(value)

    def _special(self, value: Any) -> msgpack.ExtType:
        if type(value) is complex:
            return self._ext(_COMPLEX, struct.pack("<dd", value.real, value.imag))
        if type(value) is Handle:
            return self._ext(_HANDLE, struct.pack("<QB", value.id, KINDS.index(value.kind)))
        if type(value) is torch.dtype and value in _CODE:
            return self._ext(_DTYPE, bytes((_CODE[value],)))
        if type(value) is Kept and len(value.shape) <= 32:
            sizes = (*value.shape, *value.strides)
            return self._ext(_KEPT, struct.pack(f"<QB{len(sizes)}q", value.number, _CODE[value.dtype], *sizes))
        if type(value) is Name and self.caps.names:
            return self._ext(_NAME, value.name.encode())
        if type(value) is Function and self.caps.names and _is_function(value.path):
            return self._ext(_FUNCTION, value.path.encode())
        raise ProtocolError(f"a {type(value).__name__} is not data")

    def _key(self, key: Any) -> Any:
        if type(key) is tuple and all(type(item) in _HASHABLE for item in key):
            return [_TUPLE, *map(self._key, key)]
        if type(key) not in _HASHABLE or (type(key) is int and not -(2**63) <= key < 2**63):
            raise ProtocolError(f"a {type(key).__name__} cannot be a key or an element of a set here")
        return key

    def _numbers(self, tensor: Tensor) -> msgpack.ExtType:
        """A tensor as most are; the same as below in fewer steps."""
        if self.size + tensor.nbytes > self.caps.tensors:
            raise ProtocolError(f"the message is too large ({tensor.nbytes} bytes of tensors)")
        array = np.ascontiguousarray(tensor.detach().resolve_neg().numpy())
        return self._buffer(_TENSOR, _QUICK[tensor.dtype], tensor.shape, array.data)

    def _tensor(self, tensor: Tensor) -> msgpack.ExtType:
        with torch._C.DisableTorchFunctionSubclass():
            size = tensor.numel() * tensor.element_size()
        if self.size + size > self.caps.tensors:  # before an expanded view is written out
            raise ProtocolError(f"the message is too large ({size} bytes of tensors)")
        tensor = plain(tensor)
        code = _CODE.get(tensor.dtype)
        if code is None:
            raise ProtocolError(f"tensors of {tensor.dtype} cannot pass")
        return self._buffer(_TENSOR, code, tensor.shape, raw_bytes(tensor))

    def _array(self, kind: int, array: np.ndarray) -> msgpack.ExtType:
        if self.size + array.nbytes > self.caps.tensors:  # before a broadcast view is written out
            raise ProtocolError(f"the message is too large ({array.nbytes} bytes of arrays)")
        array = plain_array(array)
        data = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
        return self._buffer(kind, _ARRAY_CODE[array.dtype], array.shape, data)

    def _buffer(self, kind: int, code: int, shape: Sequence[int], data: memoryview) -> msgpack.ExtType:
        self.buffers.append(data)
        self.size += data.nbytes
        self.numbers += math.prod(shape) or math.prod(max(length, 1) for length in shape)
        if self.numbers > self.caps.numbers:
            raise ProtocolError(f"the message is too large (more than {self.caps.numbers} numbers)")
        self._hold(len(self.buffers))
        if len(shape) > MAX_AXES:
            raise ProtocolError("a number or name is too long")
        return _item(kind, _FORMS[len(shape)].pack(code, *shape))

    def _hold(self, count: int) -> None:
        if count > self.caps.count:
            raise ProtocolError(f"more than {self.caps.count} tensors, keys or elements in one message")

    def _ext(self, code: int, data: bytes) -> msgpack.ExtType:
        if len(data) > MAX_ITEM:
            raise ProtocolError("a number or name is too long")
        return _item(code, data)


class _Unpacker:
    """Turns msgpack's types back into a value and cuts tensors and arrays from their bytes."""

    def __init__(self, data: bytearray, cursor: int, caps: Caps) -> None:
        self.data = data
        self.cursor = cursor
        self.caps = caps
        self.tensors: list[Tensor] = []
        self.arrays = 0
        self.items = 0
        self.numbers = 0

    def lift(self, tree: Any, depth: int) -> Any:
        kind = type(tree)
        if kind is str or kind is float or kind is bool or kind is int or tree is None:
            return tree
        if kind is msgpack.ExtType:
            return self._special(tree.code, tree.data)
        if kind is not list or not tree or type(tree[0]) is not int:
            raise ProtocolError(f"a {kind.__name__} does not belong into a message")
        if depth >= self.caps.depth:
            raise ProtocolError(f"the value is nested deeper than {self.caps.depth} levels")
        depth += 1
        self.items += len(tree) - 1
        if self.items > self.caps.items:
            raise ProtocolError(f"the message holds more than {self.caps.items} items")
        tag = tree[0]
        if tag == _LIST:
            return [self.lift(item, depth) for item in tree[1:]]
        if tag == _TUPLE:
            return tuple([self.lift(item, depth) for item in tree[1:]])
        if tag == _DICT:
            if len(tree) % 2 == 0 or len(tree) // 2 > self.caps.count:
                raise ProtocolError("a dict is odd or too long")
            pairs = zip(tree[1::2], tree[2::2], strict=True)
            return self._whole({self._key(key): self.lift(item, depth) for key, item in pairs}, len(tree) // 2)
        if tag == _SET and len(tree) - 1 <= self.caps.count:
            return self._whole({self._key(item) for item in tree[1:]}, len(tree) - 1)
        raise ProtocolError("a container is of no known kind, or too long")

    def _special(self, code: int, data: bytes) -> Any:
        if code == _TENSOR:
            return self._tensor(data)
        if code == _ARRAY:
            return self._array(data)
        if code == _NUMPY_SCALAR:
            scalar = self._array(data)
            if scalar.ndim:
                raise ProtocolError("a scalar has axes")
            return scalar[()]
        if code == _INT:
            return int.from_bytes(data, "little", signed=True)
        if code == _COMPLEX:
            return complex(*struct.unpack("<dd", data))
        if code == _HANDLE:
            number, kind = struct.unpack("<QB", data)
            return Handle(number, KINDS[kind])
        if code == _DTYPE:
            return DTYPES[struct.unpack("<B", data)[0]]
        if code == _KEPT:
            number, kind, *sizes = struct.unpack(f"<QB{len(data) // 8 - 1}q", data)
            half = len(sizes) // 2
            return Kept(number, DTYPES[kind], tuple(sizes[:half]), tuple(sizes[half:]))
        if code == _NAME and self.caps.names:
            return Name(data.decode())
        if code == _FUNCTION and self.caps.names and _is_function(data.decode()):
            return Function(data.decode())
        raise ProtocolError(f"an item of unknown kind {code}")

    def _tensor(self, data: bytes) -> Tensor:
        dtype, shape, end = self._place(data, DTYPES)
        if end == self.cursor:
            tensor = torch.empty(shape, dtype=dtype)
        else:
            flat = torch.frombuffer(self.data, dtype=torch.uint8, count=end - self.cursor, offset=self.cursor)
            if dtype is torch.bool and bool((flat > 1).any()):
                raise ProtocolError("a bool tensor holds other bytes than 0 and 1")
            tensor = flat.clone().view(dtype).view(shape)
        self.cursor = end
        self.tensors.append(tensor)
        return tensor

    def _array(self, data: bytes) -> np.ndarray:
        dtype, shape, end = self._place(data, ARRAY_DTYPES)
        flat = np.frombuffer(self.data, dtype=np.uint8, count=end - self.cursor, offset=self.cursor)
        if dtype.kind == "b" and bool((flat > 1).any()):
            raise ProtocolError("a bool array holds other bytes than 0 and 1")
        self.cursor = end
        self.arrays += 1
        return flat.copy().view(dtype).reshape(shape)

    def _place(self, data: bytes, dtypes: Sequence[Any]) -> tuple[Any, list[int], int]:
        """What an item says of a tensor or array: dtype, shape and where its bytes end; they must all be there."""
        axes = len(data) // 8
        if axes > MAX_AXES or len(self.tensors) + self.arrays >= self.caps.count:
            raise ProtocolError("a tensor or array with too many axes, or one too many")
        code, *shape = _FORMS[axes].unpack(data)
        if code >= len(dtypes):
            raise ProtocolError("a tensor or array of unknown dtype")
        size = math.prod(shape)
        spread = size or math.prod(max(length, 1) for length in shape)  # keeps the others small where one is 0
        self.numbers += spread
        if self.numbers > self.caps.numbers:
            raise ProtocolError(f"the message holds more than {self.caps.numbers} numbers")
        dtype = dtypes[code]
        end = self.cursor + size * dtype.itemsize
        if spread * dtype.itemsize > self.caps.tensors or end > len(self.data):
            raise ProtocolError("a tensor or array is larger than its bytes")
        return dtype, shape, end

    def _key(self, tree: Any) -> Any:
        if type(tree) is list and tree and tree[0] == _TUPLE and all(type(item) in _HASHABLE for item in tree):
            return tuple(tree[1:])
        if type(tree) not in _HASHABLE:
            raise ProtocolError("a key is not a plain value")
        return tree

    def _whole(self, container: Any, length: int) -> Any:
        if len(container) != length:
            raise ProtocolError("keys or elements stand twice")
        return container


def _is_function(path: str) -> bool:
    """Whether this names a function of ours."""
    named = _FUNCTION_NAME.fullmatch(path)
    return named is not None and is_ours(named[1])
