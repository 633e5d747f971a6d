"""Feature maps for linear attention: positive features, so that all products of a query and a key are positive."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def elu_features(x: Tensor) -> Tensor:
    """elu(x) + 1, the choice of Katharopoulos et al.: [..., D] -> [..., D]."""
    return F.elu(x) + 1


def exp_features(x: Tensor) -> Tensor:
    """exp(x), entry by entry: [..., D] -> [..., D]."""
    return torch.exp(x)


def square_features(x: Tensor) -> Tensor:
    """Features of which the product is (1 + q . k)^2: [..., D] -> [..., (D + 1)^2]."""
    x = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)  # [..., D + 1]
    return (x[..., :, None] * x[..., None, :]).flatten(-2)
