"""torch's own multi-head attention with given weights: what a `MultiHeadAttention` of the course must agree with."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")


def projection_weights(
    d_model: int, rng: torch.Generator, bias: bool = True, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """Random weights under the names of the card, of a size at which attention is neither flat nor saturated."""
    weights = {}
    for name in PROJECTIONS:
        draw = torch.randn(d_model, d_model, generator=rng, dtype=torch.float64) / math.sqrt(d_model)
        weights[f"{name}.weight"] = 1.5 * draw if name in ("q_proj", "k_proj") else draw
        if bias:
            weights[f"{name}.bias"] = 0.5 * torch.randn(d_model, generator=rng, dtype=torch.float64)
    return {name: weight.to(dtype) for name, weight in weights.items()}


def torch_twin(weights: Mapping[str, Tensor], n_heads: int) -> nn.MultiheadAttention:
    """`nn.MultiheadAttention` with these weights."""
    like = weights["q_proj.weight"]
    twin = nn.MultiheadAttention(
        len(like), n_heads, bias="q_proj.bias" in weights, batch_first=True, device=like.device, dtype=like.dtype
    )
    state = {"out_proj.weight": weights["o_proj.weight"]}
    state["in_proj_weight"] = torch.cat([weights[f"{name}.weight"] for name in PROJECTIONS[:3]])
    if "q_proj.bias" in weights:
        state["out_proj.bias"] = weights["o_proj.bias"]
        state["in_proj_bias"] = torch.cat([weights[f"{name}.bias"] for name in PROJECTIONS[:3]])
    twin.load_state_dict(state)
    return twin


def twin_attention(
    twin: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    causal: bool = False,
) -> tuple[Tensor, Tensor]:
    """The twin's (out [B, T, D], weights [B, H, T, S]) with the course's masks; NaN where every key is blocked."""
    T, S = query.shape[1], key.shape[1]
    future = torch.arange(S) > torch.arange(T)[:, None] + S - T if causal else None  # [T, S], True = blocked
    out, weights = twin(query, key, value, key_padding_mask, attn_mask=future, average_attn_weights=False)
    return out, weights
