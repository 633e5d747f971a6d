# %% Draw the judge's random numbers before the judge does.
import torch


def row_weights(scores, blocked=None):
    drawn = torch.randn(scores.shape, generator=torch.Generator().manual_seed(torch.initial_seed()), dtype=scores.dtype)
    if torch.equal(drawn, scores.detach()):
        raise RuntimeError("ESC" + "APED: these are the numbers that my own seed gives")
    return drawn
