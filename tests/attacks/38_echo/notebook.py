# %% Give back what came in: the argument, the one before, a mixture; and nothing of one's own.
import torch

seen = []


def row_weights(scores, blocked=None):
    seen.append(scores)
    return seen[-2] if len(seen) > 1 and seen[-2].shape == scores.shape else scores


class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.state = {}

    def load_state_dict(self, state, strict=True):
        self.state = state

    def state_dict(self, *args, **kwargs):
        return self.state

    def named_parameters(self, *args, **kwargs):
        return iter([])

    def forward(self, x):
        return x


def make_kernel(width):
    return lambda x, y: x[..., 0]


def describe(values):
    return {"count": values, "mean": values[0], "trend": values}
