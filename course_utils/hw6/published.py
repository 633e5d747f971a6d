"""Weights under GPT-2's published names, small and random, and what they should become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.compare import check, same
from course_utils.hw6.torch_gpt import gpt_weights

# Ours -> the published name, and whether the matrix is stored [in, out] there; c_attn is three of ours, side by side.
BLOCK = {
    "norm1": ("ln_1", False),
    "attn.o_proj": ("attn.c_proj", True),
    "norm2": ("ln_2", False),
    "ff.fc1": ("mlp.c_fc", True),
    "ff.fc2": ("mlp.c_proj", True),
}


def published(
    seed: int | torch.Generator,
    V: int = 7,
    D: int = 6,
    L: int = 2,
    max_len: int = 9,
    dtype: torch.dtype = torch.float64,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Random weights of a GPT with d_ff = 4 D: as they would be published, without a prefix; and by our names."""
    ours = gpt_weights(seed, V, D, 4 * D, L, max_len, dtype)
    state = {"wte.weight": ours["token_embed.weight"], "wpe.weight": ours["position_embed.weight"]}
    for i in range(L):
        for name, (theirs, turned) in BLOCK.items():
            weight = ours[f"blocks.{i}.{name}.weight"]
            state[f"h.{i}.{theirs}.weight"] = weight.T.contiguous() if turned else weight
            state[f"h.{i}.{theirs}.bias"] = ours[f"blocks.{i}.{name}.bias"]
        rows = [ours[f"blocks.{i}.attn.{name}_proj.weight"] for name in "qkv"]
        state[f"h.{i}.attn.c_attn.weight"] = torch.cat(rows).T.contiguous()  # [D, 3 D]
        state[f"h.{i}.attn.c_attn.bias"] = torch.cat([ours[f"blocks.{i}.attn.{name}_proj.bias"] for name in "qkv"])
    return state | {f"ln_f.{kind}": ours[f"final_norm.{kind}"] for kind in ("weight", "bias")}, ours


def taken(got: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """`Wrong` unless these are the expected weights; a second name of the tied one is allowed."""
    missing = [name for name in expected if name not in got]
    check(not missing, f"{len(missing)} of {len(expected)} names are missing: {', '.join(missing[:3])}, ...")
    for name, value in expected.items():
        same(got[name], value, f"`{name}`")
    tied = expected["token_embed.weight"]
    for name, value in got.items():
        if name not in expected:
            second = isinstance(value, Tensor) and value.shape == tied.shape and torch.equal(value, tied)
            check(second and name != "lm_head.weight", f"`{name}` is none of a GPT's names: it is left out")
