"""NumPy arrays and scalars pass both ways as what they are, and nothing else of NumPy's passes."""

from __future__ import annotations

import math
import struct
import sys

import msgpack
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.box import protocol
from autograder.box.channel import LoopbackChannel
from autograder.box.protocol import ARRAY_DTYPES, HEADER, MAGIC, TO_BOX, TO_JUDGE, ProtocolError
from autograder.judge.proxies import Student
from course_utils.checking.compare import Wrong

NONCE = b"nonce678"
ARRAY, SCALAR = 8, 9
CELL = """
import numpy as np
class Odd(np.ndarray):
    pass
def same(x): return x
def kinds(x): return type(x).__name__, str(x.dtype), x.shape
def shout(x):
    x[0] = 7
    return x.sum()
def reshape(x): x.shape = (2, 3)
def nested(a, more): more["b"][0] += 1
def odd(kind):
    return {"odd": np.ones(3).view(Odd), "big": np.arange(3, dtype=">i4"), "strided": np.arange(6.0).reshape(2, 3).T,
            "many": np.broadcast_to(np.float64(1), (2**20, 2**20)), "times": np.array(["2026-01-01"], "datetime64[D]"),
            "named": np.zeros(2, [("a", "i4")]), "long": np.zeros(2, np.longdouble),
            "key": {np.int64(3): np.float32(2)}, "list": [np.arange(2), np.float32(1.5)]}[kind]
def frame():
    import pandas
    return pandas.DataFrame({"a": [1, 2]})
"""
quick = settings(derandomize=True, deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))


@pytest.fixture
def student():
    channel = LoopbackChannel()
    student = Student(channel, arrays="numpy")
    assert [outcome.fault for outcome in student.load([{"id": "cell", "source": CELL}])] == [None]
    yield student
    channel.close()


def through(value, caps=TO_JUDGE):
    return protocol.unpack(protocol.pack(value, NONCE, 7, caps), caps)[1]


def equal(got, sent):
    alike = type(got) is type(sent) and got.dtype == sent.dtype and got.shape == sent.shape
    return alike and got.tobytes() == sent.tobytes()


@quick
@given(st.sampled_from(ARRAY_DTYPES), st.lists(st.integers(0, 4), max_size=4), st.integers(0, 2**16))
def test_arrays_come_back_bit_for_bit(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2 if dtype.kind == "b" else 256, math.prod(shape) * dtype.itemsize, dtype=np.uint8)
    array = data.view(dtype).reshape(shape)
    back = through([array])[0]
    assert equal(back, array) and back.flags.writeable and not np.shares_memory(back, array)
    assert shape or equal(through(array[()]), array[()])


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
def test_a_student_gets_what_the_judge_has_and_gives_it_back(student, dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    assert student["kinds"](array) == ("ndarray", str(dtype), (2, 3))
    assert equal(student["same"](array), array)
    assert equal(student["same"](array[1, 2]), array[1, 2])
    assert equal(student["same"](np.array(1).astype(dtype)), np.array(1).astype(dtype))


def test_byte_order_views_and_subclasses_become_plain(student):
    assert equal(student["same"](np.arange(3, dtype=">f8")), np.arange(3.0))
    assert equal(student["odd"]("big"), np.arange(3, dtype=np.int32))
    assert equal(student["odd"]("strided"), np.arange(6.0).reshape(2, 3).T.copy())
    assert equal(student["odd"]("odd"), np.ones(3))
    found = student["odd"]("list")
    assert equal(found[0], np.arange(2)) and equal(found[1], np.float32(1.5))
    assert student["odd"]("key") == {3: 2.0}


def test_in_a_course_on_torch_they_are_tensors_and_numbers(student):
    other = Student(student.channel, arrays="torch")
    got = other["same"](np.arange(3, dtype=np.float32))
    assert type(got) is torch.Tensor and torch.equal(got, torch.arange(3.0))
    assert type(other["same"](np.float64(1.5))) is float


def test_an_array_changed_in_place_is_found_out(student):
    for f, word in (("shout", "x"), ("reshape", "x")):
        with pytest.raises(Wrong, match=rf"`{f}` changed its input `{word}` in place"):
            student[f](np.arange(6.0))
    with pytest.raises(Wrong, match=r"changed its input `more\['b'\]` in place"):
        student["nested"](np.ones(2), {"b": np.zeros(2)})
    mine = np.arange(6.0)
    with pytest.raises(Wrong):
        student["shout"](mine)
    assert mine.tolist() == [0, 1, 2, 3, 4, 5], "the judge's own array is another one"


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, None], dtype=object),
        np.array(["a", "b"]),
        np.zeros(2, [("a", "i4")]),
        np.array(["2026-01-01"], "datetime64[D]"),
        np.array([1], "timedelta64[s]"),
        np.datetime64("2026-01-01"),
        np.zeros(2, np.longdouble),
    ],
    ids=str,
)
def test_other_dtypes_are_refused_with_a_sentence_where_they_are_sent(student, value):
    with pytest.raises(TypeError, match="cannot be sent to the box: arrays of dtype .* cannot pass"):
        student["same"](value)
    with pytest.raises(ProtocolError, match="only numbers and booleans can"):
        protocol.pack(value, NONCE, 1, TO_JUDGE)


@pytest.mark.parametrize("kind", ["times", "named", "long", "many"])
def test_what_cannot_come_back_is_told_to_the_student(student, kind):
    with pytest.raises(Exception, match="cannot pass|too large"):
        student["odd"](kind)


def test_a_frame_of_pandas_is_refused_both_ways(student):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(Exception, match=r"a pandas DataFrame cannot pass: give back its `.to_numpy\(\)`"):
        student["frame"]()
    with pytest.raises(TypeError, match="a pandas DataFrame cannot be sent to the box: send its NumPy arrays"):
        student["same"](pandas.DataFrame({"a": [1]}))


def item(code, dtype, *shape):
    return msgpack.ExtType(code, struct.pack(f"<B{len(shape)}Q", dtype, *shape))


def frame(tree, data=b""):
    body = msgpack.packb(tree)
    return HEADER.pack(MAGIC, NONCE, 1, len(body), len(data)) + body + data


@pytest.mark.parametrize(
    "tree, data",
    [
        (msgpack.ExtType(ARRAY, b""), b""),
        (item(ARRAY, 200, 1), b"12345678"),
        (item(ARRAY, 2, 2), b"12345678"),
        (item(ARRAY, 2, 1), b"123456789"),
        (item(ARRAY, 2, 2**63, 2), b""),
        (item(ARRAY, 2, 2**64 - 1), b"12345678"),
        (item(ARRAY, 2, 0, 2**62), b""),
        (item(ARRAY, 3, *[1] * 40), b"1"),
        (item(ARRAY, 11, 2), b"\x00\x02"),
        (item(SCALAR, 3, 1), b"1"),
        (item(SCALAR, 2), b"123"),
        ([0, *[item(ARRAY, 2, 0)] * 10_001], b""),
    ],
)
def test_every_kind_of_malformed_array_is_refused(tree, data):
    with pytest.raises(ProtocolError):
        protocol.unpack(frame(tree, data), TO_JUDGE)


@settings(quick, max_examples=1000)
@given(st.data())
def test_mutated_frames_raise_only_protocol_errors(data):
    value = {"value": [np.arange(6).reshape(2, 3), np.float32(1.5), torch.ones(2), np.array([True])]}
    good = bytearray(protocol.pack(value, NONCE, 1, TO_JUDGE))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(HEADER.size, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        protocol.unpack(good, TO_JUDGE)
    except ProtocolError:
        pass


def test_caps_hold_before_anything_is_written_out():
    wide = np.broadcast_to(np.float64(1), (2**20, 2**20))
    with pytest.raises(ProtocolError, match="too large"):
        protocol.pack(wide, NONCE, 1, TO_BOX)
    assert sys.getsizeof(wide) < 1000
    with pytest.raises(ProtocolError, match="more than 10000 tensors"):
        protocol.pack([np.zeros(1)] * 10_001, NONCE, 1, TO_JUDGE)
