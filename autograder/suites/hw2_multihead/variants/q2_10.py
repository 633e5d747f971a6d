# %% smallest-examples
"""Examples as nested lists, as small as can be."""
def broken_claims():
    one = [[[1.0]], [[1.0]]]  # two layers of width 1
    return {
        "attention_above_width": {"N": 2, "D": 1},
        "mask_after_softmax": {"scores": [[0.0, 0.0]], "blocked": [[False, True]], "values": [[1.0], [0.0]]},
        "cache_without_mask": {"x": [[1.0], [0.0]], "Wq": one, "Wk": one, "Wv": one},
    }


# %% random-examples
"""Random tensors in float32: almost every example breaks these claims."""
def broken_claims():
    g = torch.Generator().manual_seed(7)
    Wq, Wk, Wv = (torch.randn(3, 5, 5, generator=g) / 5**0.5 for _ in range(3))
    blocked = torch.ones(4, 6, dtype=torch.bool).triu(3)
    return dict(
        mask_after_softmax=dict(
            scores=torch.randn(4, 6, generator=g), blocked=blocked, values=torch.randn(6, 2, generator=g)
        ),
        cache_without_mask=dict(x=torch.randn(7, 5, generator=g), Wq=Wq, Wk=Wk, Wv=Wv),
        attention_above_width=dict(N=torch.tensor(96), D=torch.tensor(64)),
    )


# %% search-with-holds
"""Tries random examples of each claim and keeps the first that breaks it; what never breaks is taken for
true."""
from course_utils.hw2.claims import CLAIMS, holds


def _example(name, g):
    def randn(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    N, D, H = 4, 6, 3
    square = {w: randn(D, D) / D**0.5 for w in ("Wq", "Wk", "Wv")}
    return {
        "exchange_heads": {"x": randn(N, D), **square, "Wo": randn(D, D), "n_heads": H, "i": 0, "j": 2},
        "mask_after_softmax": {"scores": randn(N, 5), "blocked": randn(N, 5) > 0, "values": randn(5, D)},
        "cache_without_mask": {"x": randn(N, D), **{w: randn(2, D, D) / D**0.5 for w in square}},
        "key_bias_is_idle": {"x": randn(N, D), **square, "bk": randn(D)},
        "attention_above_width": {"N": int(torch.randint(1, 100, (), generator=g)), "D": 20},
    }[name]


def broken_claims():
    g = torch.Generator().manual_seed(1)
    found = {}
    for name in CLAIMS:
        for _ in range(40):
            example = _example(name, g)
            if not holds(name, example):
                found[name] = example
                break
    return found


# %% at-the-crossover
"""N = 2 D exactly, where the costs are equal; uniform attention (zero weights for queries) lets the new token
in; numpy arrays."""
import numpy as np


def broken_claims():
    zeros, eye = np.zeros((2, 3, 3)), np.stack([np.eye(3), np.eye(3)])
    return {
        "cache_without_mask": {"x": np.eye(3), "Wq": zeros, "Wk": eye, "Wv": eye},
        "attention_above_width": {"N": 2 * 512, "D": 512},
        "mask_after_softmax": {
            "scores": np.array([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]]),
            "blocked": np.array([[False, True, True], [False, False, True]]),
            "values": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        },
    }


# %% only-the-second-layer-differs
"""Values change although keys do not: Wk is zero in both layers."""
def broken_claims():
    eye = torch.eye(2).expand(2, 2, 2)
    cache = {"x": torch.tensor([[0.0, 1.0], [0.0, 1.0], [4.0, -1.0]]), "Wq": eye, "Wk": 0 * eye, "Wv": eye}
    scores = torch.tensor([[3.0, 1.0, -2.0]], dtype=torch.float64)
    mask = {"scores": scores, "blocked": scores == scores.amax(), "values": torch.eye(3, dtype=torch.float64)}
    claims = ("mask_after_softmax", "cache_without_mask", "attention_above_width")
    return dict(zip(claims, (mask, cache, {"N": 11, "D": 10}), strict=True))


# %% far-out-scores
"""A blocked key whose score is larger than the others by hundreds: after the softmax nothing is left."""
def broken_claims():
    rng = torch.Generator().manual_seed(5)
    return {
        "mask_after_softmax": {
            "scores": torch.tensor([[800.0, 0.0, 0.0]]),
            "blocked": torch.tensor([[True, False, False]]),
            "values": torch.tensor([[1.0], [2.0], [3.0]]),
        },
        "cache_without_mask": {
            "x": torch.randn(4, 6, generator=rng), **{W: torch.randn(3, 6, 6, generator=rng) for W in ("Wq", "Wk", "Wv")},
        },
        "attention_above_width": {"N": 2, "D": 1},
    }
