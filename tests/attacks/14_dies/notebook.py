# %% Three ways to end the process from inside an answer.
import ctypes
import os

import torch


def row_weights(scores, blocked=None):
    os._exit(0)


class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def forward(self, x):
        ctypes.string_at(0)


def make_kernel(width):
    os.abort()
