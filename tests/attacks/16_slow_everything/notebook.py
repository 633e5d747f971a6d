# %% Every call takes nearly all the time that a call may take.
import time

import torch


def row_weights(scores, blocked=None):
    time.sleep(0.5)
    return scores


class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        time.sleep(0.5)

    def forward(self, x):
        time.sleep(0.5)
