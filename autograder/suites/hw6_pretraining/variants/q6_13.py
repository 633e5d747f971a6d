# %% smallest-examples
"""Nested lists, as small as can be."""
def false_claims():
    one = [[[1.0]], [[1.0]]]
    return dict(
        order_needs_positions=dict(x=[[1.0], [0.0], [0.0]], order=[1, 0], Wq=one, Wk=one, Wv=one),
        loss_reaches_every_word=dict(logits=[[0.0, 0.0]], labels=[-100]),
        nucleus_keeps_most_words=dict(probabilities=[1.0, 0.0]),
        lower_perplexity_knows_better=dict(perplexity_a=2, tokens_a=4, perplexity_b=4, tokens_b=1, characters=4),
        neighbours_tell_inference=dict(document=[[1], [1], [2]], i=0, j=1),
        same_places_teach_as_much=dict(fixed=[True, False], anew=[[True, False], [False, True]]),
    )


# %% search-with-holds
"""Tries random examples and keeps the first that breaks a claim."""
from course_utils.hw6.claims import CLAIMS, holds


def _try(name, g):
    def r(*shape):
        return torch.randn(*shape, generator=g)

    return {
        "order_needs_positions": lambda: {"x": r(6, 3), "order": torch.randperm(5, generator=g), **{w: r(3, 3, 3) for w in ("Wq", "Wk", "Wv")}},
        "loss_reaches_every_word": lambda: {"logits": r(5, 4), "labels": torch.where(r(5) > 0, 1, -100)},
        "nucleus_keeps_most_words": lambda: {"probabilities": (4 * r(30)).softmax(0).double() / (4 * r(30)).softmax(0).double().sum()},
        "lower_perplexity_knows_better": lambda: {"perplexity_a": float(1 + 9 * torch.rand((), generator=g)), "tokens_a": 90, "perplexity_b": 30.0, "tokens_b": 15, "characters": 100},
        "neighbours_tell_inference": lambda: {"document": torch.randint(2, (8, 1), generator=g), "i": 0, "j": int(torch.randint(1, 7, (), generator=g))},
        "same_places_teach_as_much": lambda: {"fixed": torch.arange(10) < 3, "anew": torch.stack([torch.randperm(10, generator=g) < 3 for _ in range(4)])},
    }[name]()


def false_claims():
    g, found = torch.Generator().manual_seed(5), {}
    for name in CLAIMS:
        for _ in range(300):
            try:
                example = _try(name, g)
                if not holds(name, example):
                    found[name] = example
                    break
            except ValueError:
                continue
    return found


# %% large-examples-in-numpy
"""Large examples, as NumPy arrays, sets and tuples."""
import numpy as np


def false_claims():
    g = np.random.default_rng(3)
    p = np.r_[0.95, np.full(50, 0.001)]
    return {
        "same_places_teach_as_much": {"fixed": np.arange(40) < 6, "anew": np.stack([np.roll(np.arange(40) < 6, 6 * e) for e in range(5)])},
        "neighbours_tell_inference": {"document": ({1, 2, 3}, {1, 3}, {4, 1}, {4}), "i": 0, "j": 1},
        "lower_perplexity_knows_better": {"perplexity_a": 900.0, "tokens_a": 1000, "perplexity_b": 5.0, "tokens_b": 5500, "characters": 5500},
        "nucleus_keeps_most_words": {"probabilities": p},
        "loss_reaches_every_word": {"logits": g.normal(size=(20, 30)), "labels": np.where(g.random(20) < 0.15, 7, -100)},
        "order_needs_positions": {"x": g.normal(size=(10, 8)), "order": list(range(8, -1, -1)),
                                  **{w: g.normal(size=(4, 8, 8)) / 3 for w in ("Wq", "Wk", "Wv")}},
    }
