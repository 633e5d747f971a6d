"""What the box with the parts runs in the tests: functions, modules, and what takes them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

SECRET = "MARK-OF-THE-REFERENCE"


def scaled(x: Tensor, by: float = 2.0) -> Tensor:
    """by * tanh(x)."""
    if by == 0:
        raise ValueError("by is not zero")
    return by * torch.tanh(x)


def both(x: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """Two results, one of them inside a dict, and numbers that are none of torch's."""
    return x.exp(), {"arg": x.argmax(), "n": len(x), "log": x.abs().log1p()}


class Layer(nn.Module):
    """Dropout after a linear map, and a buffer that is added."""

    def __init__(self, dim: int, rate: float = 0.0) -> None:
        super().__init__()
        self.dim = dim
        self.linear = nn.Linear(dim, dim)
        self.drop = nn.Dropout(rate)
        self.register_buffer("shift", torch.arange(float(dim)))

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(torch.tanh(self.linear(x))) + self.shift

    def half(self, x: Tensor) -> Tensor:
        return self.linear(x) / 2


class Model(nn.Module):
    """Layers one after the other, the read-out tied to the embedding."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(2))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.embed.weight.T


def trained(
    model: nn.Module, loader: Any, optimizer: torch.optim.Optimizer | None = None, rate: float = 0.1
) -> list[float]:
    """Train a model; the loss of each step."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), rate)
    losses = []
    for x, y in loader:
        model.train()
        loss = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def copied(layer: Layer) -> nn.Linear:
    """A layer of torch's own with the same weights."""
    made = nn.Linear(layer.dim, layer.dim)
    made.load_state_dict(layer.linear.state_dict())
    return made


def called(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """f(x) + f(-x)."""
    return f(x) + f(-x)
