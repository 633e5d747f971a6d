# %% Three ways to ask for more than there is.
import torch


def row_weights(scores, blocked=None):
    return torch.empty(10**11)


class Gate(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        hold = []
        while True:
            hold.append(bytearray(16 * 2**20))


def make_kernel(width):
    hold = []
    while True:
        try:
            hold.append([0] * 10**6)
        except MemoryError:
            raise MemoryError from None
