# %% Everything that is not an Exception.
import sys

sys.exit(0)

# %%
raise KeyboardInterrupt

# %%
raise GeneratorExit("<b>bye</b>")


# %%
import sys

import torch


class Odd(BaseException):
    def __str__(self):
        raise SystemExit

    __repr__ = __str__


def row_weights(scores, blocked=None):
    sys.exit(0)


class Gate(torch.nn.Module):
    def __init__(self, dim):
        raise KeyboardInterrupt


def make_kernel(width):
    raise Odd
