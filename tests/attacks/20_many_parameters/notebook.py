# %% Parameters without end: 1,500 of them, or one that says it has 2**27 numbers.
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.more = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(1500)])

    def forward(self, x):
        return x * torch.sigmoid(self.linear(x))

    def load_state_dict(self, state, strict=True):
        return super().load_state_dict(state, strict=False)

    def named_parameters(self, *args, **kwargs):
        yield "linear.weight", torch.zeros(1, dtype=torch.uint8).expand(2**27)
        yield from super().named_parameters(*args, **kwargs)


def row_weights(scores, blocked=None):
    return torch.zeros(54 * 2**20, dtype=torch.uint8)
