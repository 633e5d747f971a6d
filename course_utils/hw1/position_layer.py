"""The given layer of q1_12: multi-head attention over tokens that carry a one-hot position."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from course_utils.checking.compare import check

NAMES = ("Wq", "Wk", "Wv", "Wo")


def position_layer(X: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """Attention over Z = [X, I_n] with the given weights, cast to X's dtype: X [n, d] -> [n, d_out].

    Head h is softmax(Z Wq[h] (Z Wk[h])^T / sqrt(A)) Z Wv[h]; the heads are concatenated and multiplied by Wo.
    Shapes: Wq, Wk [H, d + n, A]; Wv [H, d + n, C]; Wo [H * C, d_out]. H, A and C are free.
    """
    n, d = X.shape
    Wq, Wk, Wv, Wo = _checked(weights, d + n, X)
    Z = torch.cat([X, torch.eye(n, dtype=X.dtype, device=X.device)], dim=-1)  # [n, d + n]
    scores = (Z @ Wq) @ (Z @ Wk).mT / math.sqrt(Wq.shape[-1])  # [H, n, n]
    heads = scores.softmax(-1) @ (Z @ Wv)  # [H, n, C]
    return heads.transpose(0, 1).flatten(1) @ Wo  # [n, d_out]


def _checked(weights: Mapping[str, Tensor], width: int, X: Tensor) -> list[Tensor]:
    """The four weights in X's dtype, or `Wrong` with what does not fit."""
    check(
        isinstance(weights, Mapping),
        f"the layer's weights are a {type(weights).__name__}, expected a dict with Wq, Wk, Wv and Wo",
    )
    for name in NAMES:
        check(name in weights, f"the layer's weights have no {name}: expected a dict with Wq, Wk, Wv and Wo")
    Wq, Wk, Wv, Wo = (torch.as_tensor(weights[name]).to(X) for name in NAMES)
    for name, W in zip(NAMES[:3], (Wq, Wk, Wv), strict=True):
        check(
            W.ndim == 3 and W.shape[1] == width,
            f"{name} has shape {list(W.shape)}, expected [H, {width}, ...]: Z has d + n = {width} columns",
        )
    check(Wq.shape == Wk.shape, f"Wq has shape {list(Wq.shape)} and Wk {list(Wk.shape)}: they must agree")
    check(Wv.shape[0] == Wq.shape[0], f"Wv has {Wv.shape[0]} heads and Wq {Wq.shape[0]}: they must agree")
    rows = Wv.shape[0] * Wv.shape[2]
    check(
        Wo.ndim == 2 and Wo.shape[0] == rows,
        f"Wo has shape {list(Wo.shape)}, expected [{rows}, d_out]: H * C = {rows} rows",
    )
    return [Wq, Wk, Wv, Wo]
