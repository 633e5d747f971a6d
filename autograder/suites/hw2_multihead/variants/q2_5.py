# %% product-by-product
"""Every matrix product by name, summed."""
def _matmul(rows, inner, columns):
    return 2 * rows * inner * columns


def mha_flops(T, S, d_head, H):
    D = H * d_head
    projections = _matmul(T, D, D) + 2 * _matmul(S, D, D) + _matmul(T, D, D)
    return projections + H * (_matmul(T, d_head, S) + _matmul(T, S, d_head))


def bottleneck(T, S, d_model):
    projections = 2 * _matmul(T, d_model, d_model) + 2 * _matmul(S, d_model, d_model)
    attending = _matmul(T, d_model, S) + _matmul(T, S, d_model)
    return "projections" if projections > attending else "attention"


# %% measured
"""Runs the products on the meta device under torch's own counter."""
from torch.utils.flop_counter import FlopCounterMode


def _measure(f):
    with FlopCounterMode(display=False) as counter:
        f()
    return counter.get_total_flops()


def _project(T, S, D):
    W = torch.empty(D, D, device="meta")
    for n in (T, S, S, T):
        torch.empty(n, D, device="meta") @ W


def _attend(T, S, d, H):
    q, k, v = (torch.empty(H, n, d, device="meta") for n in (T, S, S))
    return (q @ k.mT) @ v


def mha_flops(T, S, d_head, H):
    return _measure(lambda: (_project(T, S, d_head * H), _attend(T, S, d_head, H)))


def bottleneck(T, S, d_model):
    dearer = _measure(lambda: _attend(T, S, d_model, 1)) > _measure(lambda: _project(T, S, d_model))
    return "attention" if dearer else "projections"


# %% crossover-by-reciprocals
"""Projections cost more as long as d_model (1 / T + 1 / S) is above 1; the count as a 0-dim tensor."""
def mha_flops(T, S, d_head, H):
    D = torch.tensor(d_head * H)
    return 4 * D * (D * T + D * S + T * S)


def bottleneck(T, S, d_model):
    from fractions import Fraction

    return "projections" if d_model * (Fraction(1, T) + Fraction(1, S)) > 1 else "attention"


# %% dictionary-of-costs
"""Costs in a dictionary, the largest wins; the count as the sum over heads."""
def _costs(T, S, D):
    return {"projections": 4 * D * D * (T + S), "attention": 4 * T * S * D}


def mha_flops(T, S, d_head, H):
    return sum(_costs(T, S, d_head * H).values())


def bottleneck(T, S, d_model):
    costs = _costs(T, S, d_model)
    return max(costs, key=costs.get)


# %% per-head-projections
"""The projections head by head, D by d_head each, as floats."""
def mha_flops(T, S, d_head, H):
    D = float(d_head * H)
    per_head = 2 * D * d_head * (T + S + S) + 2 * T * d_head * S * 2
    return H * per_head + 2 * T * D * D


def bottleneck(T, S, d_model):
    attention_share = T * S / (T * S + d_model * (T + S))
    return ("projections", "attention")[attention_share > 0.5]
