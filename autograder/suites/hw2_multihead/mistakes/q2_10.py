# %% exchange-heads-called-false
"""You call `exchange_heads` false. When two heads trade places their rows of Wo go with them: write the output
as a sum over heads, and see what the order of its terms does."""
def broken_claims():
    g = torch.Generator().manual_seed(0)
    x, Wq, Wk, Wv, Wo = (torch.randn(n, 4, generator=g, dtype=torch.float64) for n in (3, 4, 4, 4, 4))
    layers = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    return {
        "exchange_heads": {"x": x, "Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo, "n_heads": 2, "i": 0, "j": 1},
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2), "blocked": torch.tensor([[False, True]]), "values": torch.ones(2, 1),
        },
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layers, "Wk": layers, "Wv": layers},
        "attention_above_width": {"N": 3, "D": 2},
    }


# %% key-bias-called-false
"""You call `key_bias_is_idle` false. Adding bk to every key adds q . bk to every score of a query, the same
number for all keys: what does the softmax make of it?"""
def broken_claims():
    g = torch.Generator().manual_seed(0)
    x, Wq, Wk, Wv = (torch.randn(n, 4, generator=g, dtype=torch.float64) for n in (3, 4, 4, 4))
    bk = torch.randn(4, generator=g, dtype=torch.float64)
    layers = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    return {
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2), "blocked": torch.tensor([[False, True]]), "values": torch.ones(2, 1),
        },
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layers, "Wk": layers, "Wv": layers},
        "key_bias_is_idle": {"x": x, "Wq": Wq, "Wk": Wk, "Wv": Wv, "bk": bk},
        "attention_above_width": {"N": 3, "D": 2},
    }


# %% cache-claim-believed
"""You let `cache_without_mask` pass. In the first layer it is true. But what do the tokens of the second layer
depend on, when nothing keeps the first layer from looking ahead?"""
def broken_claims():
    return {
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2), "blocked": torch.tensor([[False, True]]), "values": torch.ones(2, 1),
        },
        "attention_above_width": {"N": 3, "D": 2},
    }


# %% mask-claim-believed
"""You let `mask_after_softmax` pass. What do the weights of a row sum to, when some of them are set to 0 after
the softmax?"""
def broken_claims():
    layers = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    return {
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layers, "Wk": layers, "Wv": layers},
        "attention_above_width": {"N": 3, "D": 2},
    }


# %% width-claim-believed
"""You let `attention_above_width` pass. Count both sides: two products and four projections. At which N are
they equal?"""
def broken_claims():
    layers = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    return {
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2), "blocked": torch.tensor([[False, True]]), "values": torch.ones(2, 1),
        },
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layers, "Wk": layers, "Wv": layers},
    }


# %% cache-example-agrees
"""Your example for `cache_without_mask` does not break the claim. With one layer nothing can: its keys and
values come straight from the tokens. What does the layer above get to see? And let the token that joins differ
from the others."""
def broken_claims():
    layer = torch.eye(2, dtype=torch.float64)[None]
    return {
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2), "blocked": torch.tensor([[False, True]]), "values": torch.ones(2, 1),
        },
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layer, "Wk": layer, "Wv": layer},
        "attention_above_width": {"N": 3, "D": 2},
    }


# %% mask-example-agrees
"""Your example for `mask_after_softmax` does not break the claim. If nothing is blocked both ways agree, and if
all keys of a row are blocked both give zero: block some keys, not all, and let their weights and the values
matter."""
def broken_claims():
    layers = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    return {
        "mask_after_softmax": {
            "scores": torch.tensor([[1.0, 2.0]]),
            "blocked": torch.zeros(1, 2, dtype=torch.bool),
            "values": torch.tensor([[1.0], [2.0]]),
        },
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layers, "Wk": layers, "Wv": layers},
        "attention_above_width": {"N": 3, "D": 2},
    }


# %% length-outside-the-gap
"""Your example for `attention_above_width` does not break the claim. Up to N = D it says nothing, and far above
it is true: a counter-example meets the condition and breaks the conclusion."""
def broken_claims():
    layers = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    return {
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2), "blocked": torch.tensor([[False, True]]), "values": torch.ones(2, 1),
        },
        "cache_without_mask": {"x": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "Wq": layers, "Wk": layers, "Wv": layers},
        "attention_above_width": {"N": 100, "D": 10},
    }


# %% verdicts-without-examples
"""You say which claims are false, which is half of the answer. For each false claim give a dict with the
arguments of an example that breaks it, and leave the true ones out."""
def broken_claims():
    return {
        "exchange_heads": True,
        "mask_after_softmax": False,
        "cache_without_mask": False,
        "key_bias_is_idle": True,
        "attention_above_width": False,
    }
