# %% counted-from-modules
"""Builds the layers on the meta device and counts what is in them."""
def _count(module):
    named = dict(module.named_parameters())
    weights = sum(p.numel() for name, p in named.items() if "weight" in name)
    return weights, sum(p.numel() for p in named.values()) - weights


def qkv_parameters(D):
    return _count(nn.ModuleList(nn.Linear(D, D, device="meta") for _ in range(3)))


def attention_entries(N):
    return torch.empty(N, N, device="meta").numel()


def dense_parameters(N, D):
    return _count(nn.Linear(N * D, N * D, device="meta"))


def mha_parameters(D, H, bias=True):
    return sum(_count(nn.MultiheadAttention(D, H, bias=bias, device="meta")))


# %% head-by-head-sums
"""Sums over heads and projections; pairs as lists."""
def qkv_parameters(D):
    return [sum(D * D for _ in "qkv"), sum(D for _ in "qkv")]


def attention_entries(N):
    return sum(1 for _ in range(N) for _ in range(N))


def dense_parameters(N, D):
    inputs = outputs = N * D
    return [inputs * outputs, outputs]


def mha_parameters(D, H, bias=True):
    width = D // H
    heads = sum(3 * (D * width + (width if bias else 0)) for _ in range(H))
    return heads + D * (D + bias)


# %% zero-dim-tensors
"""Counts as integer tensors without axes."""
def qkv_parameters(D):
    D = torch.tensor(D)
    return 3 * D.square(), 3 * D


def attention_entries(N):
    return torch.tensor(N) ** 2


def dense_parameters(N, D):
    n = torch.tensor(N * D)
    return n * n, n


def mha_parameters(D, H, bias=True):
    shapes = torch.tensor([[D, D]] * 4)
    return shapes.prod(1).sum() + int(bias) * shapes[:, 0].sum()


# %% named-tuple
"""The pair as a named tuple, the counts from one helper for a linear layer."""
from collections import namedtuple

Count = namedtuple("Count", ["weights", "biases"])


def _linear(n_in, n_out, copies=1):
    return Count(copies * n_in * n_out, copies * n_out)


def qkv_parameters(D):
    return _linear(D, 3 * D)


def attention_entries(N):
    return pow(N, 2)


def dense_parameters(N, D):
    return _linear(N * D, N * D)


def mha_parameters(D, H, bias=True):
    count = _linear(D, D, copies=4)
    return count.weights + count.biases if bias else count.weights


# %% qkv-and-output-apart
"""mha_parameters from qkv_parameters plus the output projection."""
def qkv_parameters(D):
    return (D * 3 * D, D + D + D)


def attention_entries(N):
    return N * N


def dense_parameters(N, D):
    return ((N * D) ** 2, N * D)


def mha_parameters(D, H, bias=True):
    weights, biases = qkv_parameters(D)
    weights, biases = weights + D * D, biases + D
    return weights + bias * biases


# %% counted-on-real-layers
"""The layers are made, and their parameters are counted."""
def _count(module, ending=""):
    return sum(p.numel() for name, p in module.named_parameters() if name.endswith(ending))


def qkv_parameters(D):
    layers = nn.ModuleList(nn.Linear(D, D) for _ in range(3))
    return _count(layers, "weight"), _count(layers, "bias")


def mha_parameters(D, H, bias=True):
    return _count(MultiHeadAttention(D, H, bias=bias))
