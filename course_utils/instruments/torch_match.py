"""The weights of torch's own modules under the course's names, so that the two can be held against each other.

    mine.load_state_dict(encoder_layer_state(theirs))

What each is called (`attention` is `nn.MultiheadAttention`, whose first projection stacks query, key and value):

    torch                                  here
    in_proj_weight, in_proj_bias           q_proj, k_proj, v_proj: rows 0 .. D-1, D .. 2D-1, 2D .. 3D-1
    out_proj                               o_proj
    linear1, linear2                       ff.fc1, ff.fc2
    self_attn, norm1, norm2, norm3         the same
    multihead_attn                         cross_attn
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
State = dict[str, Tensor]


def mha_state(module: nn.MultiheadAttention) -> State:
    """The weights of `nn.MultiheadAttention` for a `MultiHeadAttention`."""
    state = _copy(module)
    if "in_proj_weight" not in state or "bias_k" in state:
        raise ValueError("only nn.MultiheadAttention with kdim = vdim = embed_dim and without add_bias_kv has a match")
    result: State = {}
    for kind in ("weight", "bias"):
        if f"in_proj_{kind}" in state:
            parts = state[f"in_proj_{kind}"].chunk(3)  # query, key, value
            result |= {f"{p}_proj.{kind}": part.clone() for p, part in zip("qkv", parts, strict=True)}
            result[f"o_proj.{kind}"] = state[f"out_proj.{kind}"]
    return result


def encoder_layer_state(layer: nn.TransformerEncoderLayer) -> State:
    """The weights of `nn.TransformerEncoderLayer` for an `EncoderLayer`."""
    return {
        **_under("self_attn", mha_state(layer.self_attn)),
        **_feed_forward(layer),
        **_norms(layer, "norm1", "norm2"),
    }


def decoder_layer_state(layer: nn.TransformerDecoderLayer) -> State:
    """The weights of `nn.TransformerDecoderLayer` for a `DecoderLayer`."""
    return {
        **_under("self_attn", mha_state(layer.self_attn)),
        **_under("cross_attn", mha_state(layer.multihead_attn)),
        **_feed_forward(layer),
        **_norms(layer, "norm1", "norm2", "norm3"),
    }


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


def _feed_forward(layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> State:
    return _under("ff.fc1", _copy(layer.linear1)) | _under("ff.fc2", _copy(layer.linear2))


def _norms(layer: nn.Module, *names: str) -> State:
    return {key: value for name in names for key, value in _under(name, _copy(layer.get_submodule(name))).items()}


def _copy(module: nn.Module) -> State:
    return {name: value.clone() for name, value in module.state_dict().items()}


def _under(prefix: str, state: State) -> State:
    return {f"{prefix}.{name}": value for name, value in state.items()}
