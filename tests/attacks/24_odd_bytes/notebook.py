# %% Bytes that no text has, numbers that no float has, and strings that no encoding has.
import sys

import torch

sys.stdout.buffer.write(bytes(range(256)))
print("\x00\x1b[2J\x1b]0;title\x07\r\u202e\u2066\u2028\ufffe\ud800")
print("printed")
raise ValueError("\x00\x1b[31mred\x07 \u202egnitirw \ud800\udfff " + chr(0x10FFFF))


# %%
class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def state_dict(self, *args, **kwargs):
        return {"\x00": torch.ones(1), "\ud800": torch.ones(1), "linear.weight": torch.full((4, 4), float("nan"))}

    def forward(self, x):
        return x.new_full(x.shape, float("nan"))


def row_weights(scores, blocked=None):
    return {"\ud800": 10**2000, "nan": float("nan"), float("nan"): 1, -(10**400): 2, (): complex("nan+infj")}


def make_kernel(width):
    return lambda x, y: 10**2400 if width == 3.0 else 10**100000


def describe(values):
    mean = {3: 10**400, 2: float("inf"), 7: float("nan"), 5: -(2**63)}[len(values)]
    return {"count": 2**63, "mean": mean, "trend": "\x00\ud800\x1b[31m\u202e"}
