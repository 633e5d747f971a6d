# %% NaN, shapes that broadcast, nothing at all, and another dtype.
import torch


def row_weights(scores, blocked=None):
    nan = torch.full_like(scores, float("nan"))
    return nan if scores.ndim == 3 else nan[..., :1] if blocked is None else nan[:0]


class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def forward(self, x):
        return (x * torch.sigmoid(self.linear(x))).float() if x.shape[0] == 5 else torch.zeros(0, 3, dtype=x.dtype)


def make_kernel(width):
    return lambda x, y: torch.exp(-(x - y).square().sum(-1, keepdim=True) / (2 * width**2))  # [..., 1]


def describe(values):
    mean = sum(values) / len(values)
    step = values[-1] - values[0]
    trend = "rising" if step > 0 else "falling" if step < 0 else "flat"
    return {"count": float(len(values)) + 1e-3, "mean": torch.tensor([mean]), "trend": [trend]}
