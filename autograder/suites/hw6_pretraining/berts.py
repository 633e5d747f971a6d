"""BERT from its weights alone, written apart from the reference, and weights to try it with."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder.judge.proxies import ModuleProxy
from course_utils.checking.compare import check

Weights = dict[str, Tensor]
NORMS = ("embed_norm", "mlm_norm", "norm1", "norm2")


def shapes(V: int, D: int, d_ff: int, n_layers: int, max_len: int) -> dict[str, tuple[int, ...]]:
    """Every parameter's name and shape."""
    found: dict[str, tuple[int, ...]] = {
        "token_embed.weight": (V, D),
        "position_embed.weight": (max_len, D),
        "segment_embed.weight": (2, D),
        "mlm_bias": (V,),
    }
    linear = {"mlm_dense": (D, D), "pooler": (D, D), "nsp": (2, D)}
    norms = ["embed_norm", "mlm_norm"]
    for i in range(n_layers):
        linear |= {f"layers.{i}.self_attn.{p}_proj": (D, D) for p in "qkvo"}
        linear |= {f"layers.{i}.ff.fc1": (d_ff, D), f"layers.{i}.ff.fc2": (D, d_ff)}
        norms += [f"layers.{i}.norm1", f"layers.{i}.norm2"]
    for name, shape in linear.items():
        found |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return found | {f"{name}.{kind}": (D,) for name in norms for kind in ("weight", "bias")}


def lively(rng: torch.Generator, V: int, D: int, d_ff: int, n_layers: int, max_len: int) -> Weights:
    """Weights at which every part matters."""
    weights = {}
    for name, shape in shapes(V, D, d_ff, n_layers, max_len).items():
        noise = torch.randn(shape, generator=rng, dtype=torch.float64)
        scale = 1.0 if "embed" in name and len(shape) > 1 else 1.5 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.3
        weights[name] = scale * noise + (1.0 if any(n in name for n in NORMS) and name.endswith("weight") else 0.0)
    return weights


def put_in(model: ModuleProxy, weights: Mapping[str, Tensor]) -> None:
    """The weights by name; a second name for the tied table gets them too, other names are refused."""
    found, table = model.parameter_shapes(), weights["token_embed.weight"]
    missing = [name for name in weights if name not in found]
    check(not missing, f"there is no parameter `{missing[0] if missing else ''}`: use the names of the table")
    for name, value in weights.items():
        check(
            tuple(found[name]) == tuple(value.shape),
            f"`{name}` has shape {list(found[name])}, expected {list(value.shape)}",
        )
    extra = [name for name in found if name not in weights and tuple(found[name]) != tuple(table.shape)]
    check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many")
    state = model.state_dict()
    tied = {name: table for name, value in state.items() if name not in weights and value.shape == table.shape}
    model.load_state_dict({**state, **tied, **weights})


class Bert:
    """The published computation, on a dict of weights."""

    def __init__(self, weights: Mapping[str, Tensor], n_heads: int, eps: float = 1e-5) -> None:
        self.w, self.heads, self.eps = weights, n_heads, eps

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def _norm(self, x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def encode(self, ids: Tensor, segments: Tensor | None = None, padding: Tensor | None = None) -> Tensor:
        """ids [B, N] -> h [B, N, D]."""
        B, N = ids.shape
        x = self.w["token_embed.weight"][ids] + self.w["position_embed.weight"][:N]
        x = x + self.w["segment_embed.weight"][torch.zeros_like(ids) if segments is None else segments]
        x, i = self._norm(x, "embed_norm"), 0
        while f"layers.{i}.norm1.weight" in self.w:
            at = f"layers.{i}"
            q, k, v = (self._linear(x, f"{at}.self_attn.{p}_proj").reshape(B, N, self.heads, -1) for p in "qkv")
            scores = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
            if padding is not None:
                scores = scores.masked_fill(padding[:, None, None, :], -torch.inf)
            mixed = torch.einsum("bhts,bshd->bthd", scores.softmax(-1).nan_to_num(), v).reshape(B, N, -1)
            x = self._norm(x + self._linear(mixed, f"{at}.self_attn.o_proj"), f"{at}.norm1")
            x = self._norm(x + self._linear(F.gelu(self._linear(x, f"{at}.ff.fc1")), f"{at}.ff.fc2"), f"{at}.norm2")
            i += 1
        return x

    def __call__(
        self, ids: Tensor, segments: Tensor | None = None, padding: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        h = self.encode(ids, segments, padding)
        guess = self._norm(F.gelu(self._linear(h, "mlm_dense")), "mlm_norm")
        pair = self._linear(torch.tanh(self._linear(h[:, 0], "pooler")), "nsp")
        return guess @ self.w["token_embed.weight"].T + self.w["mlm_bias"], pair
