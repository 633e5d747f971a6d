# %% smallest-examples
"""Examples as nested lists, as small as can be."""
def broken_claims():
    one = [[[1.0]], [[1.0]]]  # two layers of width 1
    return {
        "heads_get_slices": {"x": [[1.0, 2.0]], "Wq": [[0, 0], [0, 0]], "Wk": [[0, 0], [0, 0]], "Wv": [[1, 0], [1, 0]],
                             "n_heads": 2, "head": 0},
        "more_heads_cost_less": {"N": 1, "D": 2, "fewer": 1, "more": 2},
        "cross_needs_equal_width": {"x": [[1.0]], "y": [[1.0, 2.0]], "Wq": [[1.0]], "Wk": [[1.0], [1.0]],
                                    "Wv": [[1.0], [0.0]]},
        "new_key_meets_old_queries": {"x": [[1.0], [2.0]], "Wq": [[1.0]], "Wk": [[1.0]], "Wv": [[1.0]]},
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
        heads_get_slices=dict(x=torch.randn(7, 6, generator=g), **{W: torch.randn(6, 6, generator=g) for W in
                              ("Wq", "Wk", "Wv")}, n_heads=torch.tensor(3), head=2),
        more_heads_cost_less=dict(N=torch.tensor(96), D=torch.tensor(64), fewer=8, more=64),
        cross_needs_equal_width=dict(x=torch.randn(3, 8, generator=g), y=torch.randn(5, 4, generator=g),
                                     Wq=torch.randn(8, 8, generator=g), Wk=torch.randn(4, 8, generator=g),
                                     Wv=torch.randn(4, 8, generator=g)),
        new_key_meets_old_queries=dict(x=torch.randn(7, 5, generator=g), Wq=Wq[0], Wk=Wk[0], Wv=Wv[0]),
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
        "heads_get_slices": {"x": randn(N, D), **square, "n_heads": H, "head": 1},
        "more_heads_cost_less": {"N": int(torch.randint(1, 100, (), generator=g)), "D": 20, "fewer": 2, "more": 5},
        "cross_needs_equal_width": {"x": randn(N, D), "y": randn(3, 5), "Wq": randn(D, 4), "Wk": randn(5, 4),
                                    "Wv": randn(5, D)},
        "new_key_meets_old_queries": {"x": randn(N, D), **square},
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


# %% uniform-attention
"""Uniform attention (zero weights for queries) lets the new token in; a head that reads one far feature; numpy arrays."""
import numpy as np


def broken_claims():
    zeros, eye = np.zeros((2, 3, 3)), np.stack([np.eye(3), np.eye(3)])
    return {
        "cache_without_mask": {"x": np.eye(3), "Wq": zeros, "Wk": eye, "Wv": eye},
        "heads_get_slices": {"x": np.eye(4), "Wq": np.zeros((4, 4)), "Wk": np.zeros((4, 4)), "Wv": np.eye(4)[::-1].copy(),
                             "n_heads": 2, "head": 1},
        "more_heads_cost_less": {"N": 1000, "D": 512, "fewer": 8, "more": 16},
        "cross_needs_equal_width": {"x": np.ones((2, 3)), "y": np.ones((3, 2)), "Wq": np.zeros((3, 1)),
                                    "Wk": np.zeros((2, 1)), "Wv": np.ones((2, 4))},
        "new_key_meets_old_queries": {"x": np.eye(3), "Wq": np.eye(3), "Wk": np.eye(3), "Wv": np.eye(3)},
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
    claims = ("mask_after_softmax", "cache_without_mask", "more_heads_cost_less")
    rest = {
        "heads_get_slices": {"x": torch.ones(1, 4), **{W: torch.ones(4, 4) for W in ("Wq", "Wk", "Wv")}, "n_heads": 4,
                             "head": 3},
        "cross_needs_equal_width": {"x": torch.ones(1, 2), "y": torch.ones(1, 1), "Wq": torch.ones(2, 1),
                                    "Wk": torch.ones(1, 1), "Wv": torch.ones(1, 1)},
        "new_key_meets_old_queries": {"x": cache["x"], "Wq": eye[0], "Wk": eye[0], "Wv": 0 * eye[0]},
    }
    return rest | dict(zip(claims, (mask, cache, {"N": 11, "D": 10, "fewer": 2, "more": 5}), strict=True))


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
        "heads_get_slices": {
            "x": 5 * torch.randn(4, 6, generator=rng), **{W: torch.randn(6, 6, generator=rng) for W in ("Wq", "Wk", "Wv")},
            "n_heads": 6, "head": 5,
        },
        "more_heads_cost_less": {"N": 2, "D": 64, "fewer": 1, "more": 64},
        "cross_needs_equal_width": {
            "x": torch.randn(64, 2, generator=rng), "y": torch.randn(1, 64, generator=rng),
            "Wq": torch.randn(2, 3, generator=rng), "Wk": torch.randn(64, 3, generator=rng),
            "Wv": torch.randn(64, 1, generator=rng),
        },
        "new_key_meets_old_queries": {
            "x": 10 * torch.randn(4, 6, generator=rng), **{W: torch.randn(6, 6, generator=rng) for W in ("Wq", "Wk", "Wv")},
        },
    }
