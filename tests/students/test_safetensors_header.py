"""The header of a safetensors file, whatever stands in it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from course_utils.data.safetensors_header import LARGEST, read_header
from course_utils.hw5.published_files import SIGLIP, tell_siglip
from course_utils.hw6.gpt2_file import WEIGHTS, tell_gpt2

ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def with_header(content: object) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text)) + text


def test_names_shapes_texts_and_the_size_of_the_whole_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"w": torch.zeros(3, 2), "b": torch.zeros(())}, path, metadata={"kind": "small"})
    header = read_header(path)
    assert header is not None and header.tensors == {"w": (3, 2), "b": ()}
    assert header.metadata == {"kind": "small"} and header.size == path.stat().st_size


HOSTILE = [
    b"",
    b"\x01\x02",
    b"PK\3\4 of torch.save, and more of it",
    struct.pack("<Q", LARGEST + 1) + b"{}",
    struct.pack("<Q", 100) + b'{"w": ',
    with_header(b"\xff\xfe{}"),
    with_header(b"[" * 100_000),
    with_header([1, 2]),
    with_header("text"),
    with_header({"w": 3}),
    with_header({"w": {**ENTRY, "data_offsets": 8}}),
    with_header({"w": {**ENTRY, "data_offsets": [0]}}),
    with_header({"w": {**ENTRY, "data_offsets": [0, "8"]}}),
    with_header({"w": {**ENTRY, "data_offsets": [0, True]}}),
    with_header({"w": {**ENTRY, "shape": [-2]}}),
    with_header({"w": {"dtype": "F32"}}),
]


@pytest.mark.parametrize("content", HOSTILE)
def test_what_is_no_header_is_none_and_those_who_ask_say_so(tmp_path: Path, content: bytes) -> None:
    for name in (SIGLIP.file, WEIGHTS):
        (tmp_path / name).write_bytes(content)
        assert read_header(tmp_path / name) is None
    whole, told = tell_siglip(tmp_path)
    assert not whole and "no safetensors file" in told[0]
    whole, told = tell_gpt2(tmp_path)
    assert not whole and "it is cut, or another file" in told[0]


def test_another_model_and_a_cut_file_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / SIGLIP.file
    path.write_bytes(with_header({SIGLIP.mark: ENTRY, "__metadata__": 3}) + bytes(8))
    assert tell_siglip(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-1])
    assert "it is cut or damaged" in tell_siglip(tmp_path)[1][0]
    path.write_bytes(with_header({"other": ENTRY}) + bytes(8))
    assert f"another model's file: it has no {SIGLIP.mark}" in tell_siglip(tmp_path)[1][0]
    (tmp_path / WEIGHTS).write_bytes(with_header({"transformer.wte.weight": ENTRY}) + bytes(8))
    assert "a model of this kind, but not the published file" in tell_gpt2(tmp_path)[1][0]
