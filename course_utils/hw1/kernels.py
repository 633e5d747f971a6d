"""Kernels for Nadaraya-Watson regression: query first; leading axes broadcast, the last axis is summed."""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_kernel(a: Tensor, b: Tensor) -> Tensor:
    """exp(-|a - b|^2 / 2), bandwidth 1: [..., D], [..., D] -> [...]."""
    return torch.exp(-(a - b).square().sum(-1) / 2)


def laplace_kernel(a: Tensor, b: Tensor) -> Tensor:
    """exp(-|a - b|_1), a sharper peak and heavier tails than the Gaussian: [..., D], [..., D] -> [...]."""
    return torch.exp(-(a - b).abs().sum(-1))


def dot_exp_kernel(a: Tensor, b: Tensor) -> Tensor:
    """exp(a . b), no scale: [..., D], [..., D] -> [...]."""
    return torch.exp((a * b).sum(-1))


def lopsided_kernel(a: Tensor, b: Tensor) -> Tensor:
    """A Gaussian that prefers keys below the query, K(a, b) != K(b, a): [..., D], [..., D] -> [...]."""
    return gaussian_kernel(a, b) * torch.sigmoid(2 * (a - b).sum(-1))
