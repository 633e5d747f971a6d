# %% An answer that is wrong by one percent, in a dtype for which two percent would be rounding.
import torch


def make_kernel(width):
    return lambda x, y: (1.01 * torch.exp(-(x - y).square().sum(-1) / (2 * width**2))).to(torch.bfloat16)


def describe(values):
    mean = torch.tensor(1.01 * sum(values) / len(values), dtype=torch.bfloat16)
    return {"count": len(values), "mean": mean, "trend": "?"}
