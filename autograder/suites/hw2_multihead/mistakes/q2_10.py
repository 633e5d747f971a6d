# %% exchange-heads-called-false
"""You call `exchange_heads` false. When two heads trade places their rows of Wo go with them: write the output
as a sum over heads, and see what the order of its terms does."""
replace('"mask_after_softmax": {', """"exchange_heads": {
            **{name: torch.randn(4, 4, generator=rng) for name in ("x", "Wq", "Wk", "Wv", "Wo")},
            **{"n_heads": 2, "i": 0, "j": 1},
        },
        "mask_after_softmax": {""")

# %% key-bias-called-false
"""You call `key_bias_is_idle` false. Adding bk to every key adds q . bk to every score of a query, the same
number for all keys: what does the softmax make of it?"""
replace('"mask_after_softmax": {', """"key_bias_is_idle": {
            **{name: torch.randn(4, 4, generator=rng) for name in ("x", "Wq", "Wk", "Wv")},
            "bk": torch.randn(4, generator=rng),
        },
        "mask_after_softmax": {""")

# %% cache-claim-believed
"""You let `cache_without_mask` pass. In the first layer it is true. But what do the tokens of the second layer
depend on, when nothing keeps the first layer from looking ahead?"""
replace('"cache_without_mask": {"x": torch.randn(3, 4, generator=rng), **two_layers},', "")

# %% mask-claim-believed
"""You let `mask_after_softmax` pass. What do the weights of a row sum to, when some of them are set to 0 after
the softmax?"""
replace("    return {", "    claims = {")
replace(""""D": 64},  # the products win above 2 D only
    }""",
        """"D": 64},
    }
    del claims["mask_after_softmax"]
    return claims""")

# %% width-claim-believed
"""You let `attention_above_width` pass. Count both sides: two products and four projections. At which N are
they equal?"""
replace('"attention_above_width": {"N": 100, "D": 64},', "")

# %% cache-example-agrees
"""Your example for `cache_without_mask` does not break the claim. With one layer nothing can: its keys and
values come straight from the tokens. What does the layer above get to see? And let the token that joins differ
from the others."""
replace("torch.randn(2, 4, 4, generator=rng)", "torch.randn(1, 4, 4, generator=rng)")

# %% mask-example-agrees
"""Your example for `mask_after_softmax` does not break the claim. If nothing is blocked both ways agree, and if
all keys of a row are blocked both give zero: block some keys, not all, and let their weights and the values
matter."""
replace("[[False, True]]", "[[False, False]]")

# %% length-outside-the-gap
"""Your example for `attention_above_width` does not break the claim. Up to N = D it says nothing, and far above
it is true: a counter-example meets the condition and breaks the conclusion."""
replace('{"N": 100, "D": 64}', '{"N": 100, "D": 10}')

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
