"""Published vision models under the names of homework 5: SigLIP's tower with its MAP head, and the class-token ViT.

Both were trained with an eps, and SigLIP's also with a GELU, that our layers do not have. `published_vit` makes a
student's `ViT` of the right sizes, puts norms and feed-forward parts of the published kind into its layers, and
leaves everything else as the student wrote it.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

HEAD_WIDTH = 64  # of all base and large models; a file does not tell the number of heads

# Published name -> ours, tried in this order; the number of a layer stays. ViTs have two sets of names, old and new.
SIGLIP = {
    r"^embeddings\.patch_embedding\.": "embed.proj.",
    r"^embeddings\.position_embedding\.weight$": "positions",
    r"^encoder\.layers\.": "layers.",
    r"\.layer_norm(?=[12]\.)": ".norm",
    r"\.out_proj\.": ".o_proj.",
    r"^(layers\.\d+\.)mlp\.": r"\1ff.",
    r"^post_layernorm\.": "norm.",
    r"^head\.attention\.": "map_head.attn.",
    r"^head\.layernorm\.": "map_head.norm.",
    r"^head\.": "map_head.",
}
VIT = {
    r"^embeddings\.patch_embeddings\.projection\.": "embed.proj.",
    r"^embeddings\.position_embeddings$": "positions",
    r"^embeddings\.cls_token$": "cls",
    r"^(encoder\.layer|layers)\.": "layers.",
    r"\.layernorm_before\.": ".norm1.",
    r"\.layernorm_after\.": ".norm2.",
    r"\.attention\.attention\.(query|key|value)\.": lambda found: f".self_attn.{found[1][0]}_proj.",
    r"\.attention\.output\.dense\.": ".self_attn.o_proj.",
    r"\.attention\.(?=[qkvo]_proj\.)": ".self_attn.",
    r"\.intermediate\.dense\.": ".ff.fc1.",
    r"\.output\.dense\.": ".ff.fc2.",
    r"\.mlp\.": ".ff.",
    r"^layernorm\.": "norm.",
    r"^classifier\.": "head.",
}


def from_siglip(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a `ViT` with `pool="map"` from those of SigLIP's vision tower; its logits are SigLIP's vector.

    SigLIP ends behind the MAP head, so our linear head is the identity. Names of its text tower are passed over.
    """
    others = ("text_model.", "logit_")
    found = {name.removeprefix("vision_model."): w for name, w in state.items() if not name.startswith(others)}
    weights = _renamed(found, SIGLIP)
    weights["positions"] = weights["positions"][None]  # [1, N, D]
    return _with_head(_unfused(weights))


def from_vit(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a `ViT` with `pool="cls"` from those of a published class-token ViT, with or without classifier.

    The published class token has a position, the first row of the table. Ours has none: the two are always added, so
    their sum is our class token. The pooler of pre-training is no part of the classifier, and is passed over.
    """
    found = {name.removeprefix("vit."): weight for name, weight in state.items()}
    weights = _renamed({name: w for name, w in found.items() if not name.startswith("pooler.")}, VIT)
    places = weights["positions"]  # [1, 1 + N, D]
    weights |= {"cls": weights["cls"] + places[:, :1], "positions": places[:, 1:]}
    return _with_head(weights)


def published_vit(
    make: Callable[..., nn.Module], state: Mapping[str, Tensor], n_heads: int | None = None, eps: float | None = None
) -> nn.Module:
    """The student's `ViT` as the published model whose tensors these are, in evaluation mode.

    Its norms get the published eps (SigLIP 1e-6, ViT 1e-12, unless told otherwise), and its feed-forward parts the
    published GELU (SigLIP's is approximated by tanh, ViT's is exact).
    """
    is_siglip = any(name.endswith("head.probe") for name in state)
    weights = from_siglip(state) if is_siglip else from_vit(state)
    D, channels, patch, _ = next(weight for weight in state.values() if weight.dim() == 4).shape  # the filters
    d_ff, side = len(weights["layers.0.ff.fc1.bias"]), math.isqrt(weights["positions"].shape[1])
    n_layers = sum(name.endswith("ff.fc1.bias") for name in weights)
    model: Any = make(
        image_size=side * patch, patch=patch, channels=channels, d_model=D, n_heads=n_heads or D // HEAD_WIDTH,
        d_ff=d_ff, n_layers=n_layers, n_classes=len(weights["head.bias"]), pool="map" if is_siglip else "cls",
    )  # fmt: skip
    eps = eps or (1e-6 if is_siglip else 1e-12)
    for layer in model.layers:
        gelu = nn.GELU(approximate="tanh" if is_siglip else "none")
        layer.ff = nn.Sequential(OrderedDict(fc1=nn.Linear(D, d_ff), gelu=gelu, fc2=nn.Linear(d_ff, D)))
        layer.norm1, layer.norm2 = nn.LayerNorm(D, eps), nn.LayerNorm(D, eps)
    model.norm = nn.LayerNorm(D, eps)
    model.load_state_dict(weights)
    return model.eval()


def _renamed(state: Mapping[str, Tensor], names: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors by our names, filters [D, C, P, P] as rows of our linear layer."""
    weights = {}
    for name, weight in state.items():
        for theirs, ours in names.items():
            name = re.sub(theirs, ours, name)
        weights[name] = weight.flatten(1) if name == "embed.proj.weight" else weight
    if missing := [name for name in ("embed.proj.weight", "positions", "norm.weight") if name not in weights]:
        raise ValueError(f"these are no weights of this kind: nothing in them becomes {', '.join(missing)}")
    return {name: weight for name, weight in weights.items() if not name.endswith("position_ids")}


def _unfused(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A fused `in_proj` has the rows of queries, keys and values one below the other: three of ours."""
    parts: dict[str, Tensor] = {}
    for name, weight in weights.items():
        path, fused, kind = name.rpartition("in_proj_")  # kind is weight or bias
        if fused:
            parts |= {f"{path}{letter}_proj.{kind}": part for letter, part in zip("qkv", weight.chunk(3), strict=True)}
        else:
            parts[name] = weight
    return parts


def _with_head(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Where nothing is classified our head is the identity: the logits are the pooled vector itself."""
    pooled = weights["norm.weight"]  # [D]
    return {"head.weight": torch.eye(len(pooled)).to(pooled), "head.bias": torch.zeros_like(pooled)} | weights
