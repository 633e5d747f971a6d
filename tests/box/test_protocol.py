"""The codec: what passes comes back the same, and nothing that the box could send breaks the judge."""

import math
import struct

import msgpack
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.box import protocol, wire
from autograder.box.protocol import DTYPES, HEADER, MAGIC, TO_BOX, TO_JUDGE, Function, Handle, Name, ProtocolError

NONCE = b"nonce678"
quick = settings(
    derandomize=True, deadline=None, max_examples=300, suppress_health_check=list(HealthCheck), database=None
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.complex_numbers(allow_nan=False)
    | st.sampled_from(DTYPES)
)
keys = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("abc", max_size=5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.sets(st.tuples(keys, keys), max_size=3)
    ),
    max_leaves=20,
)


def through(value, caps=TO_JUDGE):
    return protocol.unpack(protocol.pack(value, NONCE, 7, caps), caps)[1]


def frame(tree, tensors=b""):
    body = msgpack.packb(tree)
    return HEADER.pack(MAGIC, NONCE, 1, len(body), len(tensors)) + body + tensors


def tensor_item(code, *shape):
    return msgpack.ExtType(1, struct.pack(f"<B{len(shape)}Q", code, *shape))


@quick
@given(values)
def test_values_come_back_equal_and_of_the_same_types(value):
    back = through(value)
    assert back == value
    assert repr(type(back)) == repr(type(value))


@quick
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=4), st.integers(0, 2**16))
def test_tensors_come_back_bit_for_bit(dtype, shape, seed):
    count = math.prod(shape) * dtype.itemsize
    rng = torch.Generator().manual_seed(seed)
    flat = torch.randint(0, 2 if dtype is torch.bool else 256, (count,), dtype=torch.uint8, generator=rng)
    tensor = flat.view(dtype).view(shape) if count else torch.empty(shape, dtype=dtype)
    back = through([tensor])[0]
    assert type(back) is torch.Tensor and back.dtype == dtype and back.shape == tensor.shape
    assert bytes(protocol.raw_bytes(back)) == bytes(protocol.raw_bytes(tensor))


def test_a_tensor_that_came_back_is_the_judges_own():
    tensor = torch.ones(3, 4)
    back = through(tensor)
    back += 1
    assert back.data_ptr() != tensor.data_ptr() and tensor.sum() == 12


def test_views_conjugates_parameters_and_nan_pass():
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(through(x.T), x.T)
    z = torch.complex(x, x + 1)
    assert torch.equal(through(z.conj()), z.conj()) and torch.equal(through(z.conj().imag), z.conj().imag)
    assert torch.equal(through(torch.nn.Parameter(x)), x)
    assert math.isnan(through(math.nan)) and through(torch.tensor([math.nan, math.inf])).isnan()[0]


@pytest.mark.parametrize(
    "view",
    [torch.zeros(()).expand(1), torch.arange(6.0)[::6], torch.ones(4, 4)[:1, :1].T, torch.ones(5, 3)[:0]],
    ids=["expanded", "strided", "transposed", "empty"],
)
def test_views_of_one_number_and_of_none_pass_whatever_their_strides(view):
    assert torch.equal(through(view), view)
    assert torch.equal(wire.tensor_of(wire.numbers(view).data), view)


def test_handles_pass_both_ways_and_names_only_to_the_box():
    assert through(Handle(2**40, "module")) == Handle(2**40, "module")
    for value in (Name("attention"), Function("course_utils.hw1.kernels:gaussian_kernel")):
        assert through(value, TO_BOX) == value
        with pytest.raises(ProtocolError):
            protocol.pack(value, NONCE, 1, TO_JUDGE)
        with pytest.raises(ProtocolError):
            protocol.unpack(protocol.pack(value, NONCE, 1, TO_BOX), TO_JUDGE)


@pytest.mark.parametrize(
    "path", ["os:system", "course_utils.x:__import__", "course_utils_evil:f", "course_utils:a.b", "course_utils"]
)
def test_only_functions_of_course_utils_can_be_named(path):
    with pytest.raises(ProtocolError):
        protocol.pack(Function(path), NONCE, 1, TO_BOX)
    with pytest.raises(ProtocolError):
        protocol.unpack(frame(msgpack.ExtType(6, path.encode())), TO_BOX)


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [object(), b"bytes", nested(60), nested(5000), {(1, (2,)): 3}, {2**70: 1}, 2**10_000, print]
)
def test_what_is_not_data_cannot_be_packed(value):
    with pytest.raises(ProtocolError):
        protocol.pack(value, NONCE, 1, TO_JUDGE)


@pytest.mark.parametrize(
    "tree, tensors",
    [
        ([9, 1], b""),
        ([], b""),
        (["x"], b""),
        ({"a": 1}, b""),
        (b"raw", b""),
        ([2, "key"], b""),
        ([2, "a", 1, "a", 2], b""),
        ([2, [0], 1], b""),
        ([3, 1, 1], b""),
        ([3, [1, [1, 2]]], b""),
        (msgpack.Timestamp(1, 2), b""),
        (msgpack.ExtType(99, b""), b""),
        (msgpack.ExtType(3, b"short"), b""),
        (msgpack.ExtType(4, b"short"), b""),
        (msgpack.ExtType(4, struct.pack("<QB", 1, 200)), b""),
        (msgpack.ExtType(7, b"\xff"), b""),
        (msgpack.ExtType(1, b""), b""),
        (tensor_item(200, 1), b"1234"),
        (tensor_item(2, 2), b"1234"),
        (tensor_item(2, 1), b"12345678"),
        (tensor_item(2, 2**63, 2), b""),
        (tensor_item(2, 2**64 - 1), b"1234"),
        (tensor_item(2, 0, 2**62), b""),
        (tensor_item(2, *[1] * 40), b"1234"),
        (tensor_item(12, 2), b"\x00\x02"),
        (1, b"1234"),
        ([0, *[tensor_item(2, 0)] * 10_001], b""),
    ],
)
def test_every_kind_of_malformed_message_is_refused(tree, tensors):
    with pytest.raises(ProtocolError):
        protocol.unpack(frame(tree, tensors), TO_JUDGE)


def test_deep_and_wide_messages_are_refused_before_they_cost_anything():
    long = [kind + b"\xff\xff\xff\xff" for kind in (b"\xdd", b"\xc6", b"\xdb", b"\xdf", b"\xc9")]
    for body in (b"\x91" * 100_000 + b"\x00", b"\xdf\x00\x00\x00\x01\x01\x01", *long):
        with pytest.raises(ProtocolError):
            protocol.unpack(HEADER.pack(MAGIC, NONCE, 1, len(body), 0) + body, TO_JUDGE)
    for lengths in ((2**32 - 1, 0), (1, 2**63), (TO_JUDGE.tree + 1, 0)):
        with pytest.raises(ProtocolError):
            protocol.read_header(HEADER.pack(MAGIC, NONCE, 1, *lengths), TO_JUDGE)


@settings(quick, max_examples=2000)
@given(st.binary(max_size=400), st.binary(max_size=64))
def test_random_bodies_raise_only_protocol_errors(body, tensors):
    try:
        protocol.unpack(HEADER.pack(MAGIC, NONCE, 1, len(body), len(tensors)) + body + tensors, TO_JUDGE)
    except ProtocolError:
        pass


@settings(quick, max_examples=300)
@given(st.binary(max_size=200))
def test_random_frames_are_refused(data):
    with pytest.raises(ProtocolError):
        protocol.unpack(data, TO_JUDGE)


@settings(quick, max_examples=1500)
@given(st.data())
def test_mutated_frames_raise_only_protocol_errors(data):
    value = {"value": [torch.arange(6).reshape(2, 3), (1.5, {"a": {1, 2}}), Handle(3, "object"), 2**80, 1j], "call": 3}
    good = bytearray(protocol.pack(value, NONCE, 1, TO_JUDGE))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(good) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if change == "set":
            good[at] = data.draw(st.integers(0, 255))
        elif change == "cut" and len(good) > 1:
            del good[at]
        else:
            good.insert(at, data.draw(st.integers(0, 255)))
    if data.draw(st.booleans()) and len(good) > HEADER.size:  # repair the length so that the body is read
        good[20:24] = struct.pack("<I", max(len(good) - HEADER.size - 48, 0))
        good[24:32] = struct.pack("<Q", min(48, len(good) - HEADER.size))
    try:
        protocol.unpack(good, TO_JUDGE)
    except ProtocolError:
        pass


def test_the_judge_counts_the_items_of_a_message_itself():
    frame = protocol.pack([[0] * 100] * 3000, NONCE, 1, protocol.TO_JUDGE)
    with pytest.raises(ProtocolError, match="more than 250000 items"):
        protocol.unpack(bytearray(frame), protocol.TO_JUDGE)
