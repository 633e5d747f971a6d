"""A language model out of torch's own layers, to hold an answer's GPT against; weights by the names of the homework."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def gpt_weights(
    seed: int | torch.Generator, V: int, D: int, d_ff: int, L: int, max_len: int, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """Lively random weights, by name."""
    rng = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)

    def draw(*shape: int, size: float = 1.0) -> Tensor:
        return (size * torch.randn(shape, generator=rng, dtype=torch.float64)).to(dtype)

    weights = {"token_embed.weight": draw(V, D), "position_embed.weight": draw(max_len, D)}
    for i in range(L):
        block = f"blocks.{i}."
        for norm in ("norm1", "norm2"):
            weights |= {f"{block}{norm}.weight": 1 + draw(D, size=0.3), f"{block}{norm}.bias": draw(D, size=0.3)}
        layers = {f"attn.{name}_proj": (D, D) for name in "qkvo"} | {"ff.fc1": (d_ff, D), "ff.fc2": (D, d_ff)}
        for name, (rows, columns) in layers.items():
            weights[f"{block}{name}.weight"] = draw(rows, columns, size=1.5 / columns**0.5)
            weights[f"{block}{name}.bias"] = draw(rows, size=0.3)
    return weights | {"final_norm.weight": 1 + draw(D, size=0.3), "final_norm.bias": draw(D, size=0.3)}


def sizes_of(weights: dict[str, Tensor]) -> tuple[int, int, int, int, int]:
    """V, D, d_ff, number of layers, max_len."""
    (V, D), max_len = weights["token_embed.weight"].shape, len(weights["position_embed.weight"])
    layers = [int(name.split(".")[1]) for name in weights if name.startswith("blocks.")]
    return V, D, len(weights["blocks.0.ff.fc1.weight"]), max(layers) + 1, max_len


def loaded(GPT: Callable[..., Any], weights: dict[str, Tensor], n_heads: int, dropout: float = 0.0) -> Any:
    """An answer's GPT with these weights, in evaluation mode; a second name of the tied weight gets it too."""
    V, D, d_ff, L, max_len = sizes_of(weights)
    model = GPT(V, D, n_heads, d_ff, L, max_len, dropout=dropout)
    model.double() if weights["token_embed.weight"].dtype == torch.float64 else model.float()
    model.eval()
    state = dict(model.state_dict())
    tied = state.get("token_embed.weight")
    if tied is not None:
        for name, value in state.items():
            if name not in weights and value.shape == tied.shape and torch.equal(value, tied):
                state[name] = weights["token_embed.weight"]
    model.load_state_dict({**state, **weights})
    return model


@torch.no_grad()
def twin_logits(weights: dict[str, Tensor], n_heads: int, ids: Tensor) -> Tensor:
    """The logits of torch's own pre-norm layers with these weights: ids [B, T], no padding -> [B, T, V]."""
    _, D, d_ff, L, _ = sizes_of(weights)
    T, dtype = ids.shape[1], weights["token_embed.weight"].dtype
    x = weights["token_embed.weight"][ids] + weights["position_embed.weight"][:T]  # [B, T, D]
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    for i in range(L):
        of = {name.removeprefix(f"blocks.{i}."): value for name, value in weights.items()}
        layer = nn.TransformerEncoderLayer(
            D, n_heads, d_ff, 0.0, partial(F.gelu, approximate="tanh"), batch_first=True, norm_first=True, dtype=dtype
        ).eval()
        state = {
            f"self_attn.in_proj_{kind}": torch.cat([of[f"attn.{n}_proj.{kind}"] for n in "qkv"])
            for kind in ("weight", "bias")
        }
        names = {"self_attn.out_proj": "attn.o_proj", "linear1": "ff.fc1", "linear2": "ff.fc2", "norm1": "norm1"}
        for theirs, ours in (names | {"norm2": "norm2"}).items():
            state |= {f"{theirs}.{kind}": of[f"{ours}.{kind}"] for kind in ("weight", "bias")}
        layer.load_state_dict(state)
        x = layer(x, src_mask=later)
    x = F.layer_norm(x, (D,), weights["final_norm.weight"], weights["final_norm.bias"])
    return x @ weights["token_embed.weight"].T


def twin_padded(weights: dict[str, Tensor], n_heads: int, ids: Tensor, padding: Tensor) -> list[Tensor]:
    """For each row its real tokens' logits, computed from them alone: [its length, V] each."""
    return [twin_logits(weights, n_heads, row[~gone][None])[0] for row, gone in zip(ids, padding, strict=True)]
