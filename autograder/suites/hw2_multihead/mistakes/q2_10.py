# %% exchange-heads-called-false price=0.15
"""You call `exchange_heads` false. When two heads trade places their rows of Wo go with them: write the output
as a sum over heads, and see what the order of its terms does."""
replace('"mask_after_softmax": {', """"exchange_heads": {
            **{name: torch.randn(4, 4, generator=rng) for name in ("x", "Wq", "Wk", "Wv", "Wo")},
            **{"n_heads": 2, "i": 0, "j": 1},
        },
        "mask_after_softmax": {""")

# %% key-bias-called-false price=0.15
"""You call `key_bias_is_idle` false. Adding bk to every key adds q . bk to every score of a query, the same
number for all keys: what does the softmax make of it?"""
replace('"mask_after_softmax": {', """"key_bias_is_idle": {
            **{name: torch.randn(4, 4, generator=rng) for name in ("x", "Wq", "Wk", "Wv")},
            "bk": torch.randn(4, generator=rng),
        },
        "mask_after_softmax": {""")

# %% cache-claim-believed price=0.15
"""You let `cache_without_mask` pass. In the first layer it is true. But what do the tokens of the second layer
depend on, when nothing keeps the first layer from looking ahead?"""
replace('"cache_without_mask": {"x": torch.randn(3, 4, generator=rng), **two_layers},', "")

# %% mask-claim-believed price=0.15
"""You let `mask_after_softmax` pass. What do the weights of a row sum to, when some of them are set to 0 after
the softmax?"""
replace("    return {", "    claims = {")
replace("""# nobody sees the new key
    }""",
        """
    }
    del claims["mask_after_softmax"]
    return claims""")

# %% slices-believed price=0.15
"""You let `heads_get_slices` pass. It is the projections that are cut into heads, and not the input: of which features is
one column of Wq made?"""
replace('"heads_get_slices": {"x": torch.randn(3, 4, generator=rng), **one_layer, "n_heads": 2, "head": 0},', "")

# %% cheaper-heads-believed price=0.15
"""You let `more_heads_cost_less` pass. One head of width D / H costs less; how many of them are there?"""
replace('"more_heads_cost_less": {"N": 10, "D": 8, "fewer": 1, "more": 4},', "")

# %% equal-widths-believed price=0.15
"""You let `cross_needs_equal_width` pass. Queries and keys are multiplied after they are projected: which widths have to be
equal then?"""
replace("    return {", "    claims = {")
replace("""# nobody sees the new key
    }""",
        """
    }
    del claims["cross_needs_equal_width"]
    return claims""")

# %% new-key-believed price=0.15
"""You let `new_key_meets_old_queries` pass. Under a causal mask nobody but the new token sees the new key. Which of the old
outputs can change?"""
replace('"new_key_meets_old_queries": {"x": torch.randn(3, 4, generator=rng), **one_layer},', "")

# %% cache-example-agrees price=0.1
"""Your example for `cache_without_mask` does not break the claim. With one layer nothing can: its keys and
values come straight from the tokens. What does the layer above get to see? And let the token that joins differ
from the others."""
replace("torch.randn(2, 4, 4, generator=rng)", "torch.randn(1, 4, 4, generator=rng)")

# %% mask-example-agrees price=0.1
"""Your example for `mask_after_softmax` does not break the claim. If nothing is blocked both ways agree, and if
all keys of a row are blocked both give zero: block some keys, not all, and let their weights and the values
matter."""
replace("[[False, True]]", "[[False, False]]")

# %% slices-example-agrees price=0.1
"""Your example for `heads_get_slices` does not break the claim: with one head the slice is the whole input, and with
matrices that are zero outside of their blocks a head hears nothing else indeed."""
replace('"n_heads": 2, "head": 0', '"n_heads": 1, "head": 0')

# %% heads-example-agrees price=0.1
"""Your example for `more_heads_cost_less` does not break the claim: it speaks of `more` heads than `fewer`, and in your
example there are not."""
replace('"fewer": 1, "more": 4', '"fewer": 4, "more": 1')

# %% widths-example-agrees price=0.1
"""Your example for `cross_needs_equal_width` does not break the claim: the widths are equal, or queries and keys do not
meet at one width after their projections. Let Wq and Wk have different rows and equal columns."""
replace('"Wk": torch.randn(5, 6, generator=rng)', '"Wk": torch.randn(5, 4, generator=rng)')

# %% verdicts-without-examples price=0.8
"""You say which claims are false, which is half of the answer. For each false claim give a dict with the
arguments of an example that breaks it, and leave the true ones out."""
def broken_claims():
    return {
        "exchange_heads": True,
        "heads_get_slices": False,
        "more_heads_cost_less": False,
        "cross_needs_equal_width": False,
        "mask_after_softmax": False,
        "cache_without_mask": False,
        "new_key_meets_old_queries": False,
        "key_bias_is_idle": True,
    }

# %% everything-called-false price=0.5
"""You call all eight claims false. Two of them are true, and no example breaks those: which ones survive every try, and
why?"""
replace("    return {", """    true = {
        "exchange_heads": {
            **{name: torch.randn(4, 4, generator=rng) for name in ("x", "Wq", "Wk", "Wv", "Wo")},
            **{"n_heads": 2, "i": 0, "j": 1},
        },
        "key_bias_is_idle": {
            **{name: torch.randn(4, 4, generator=rng) for name in ("x", "Wq", "Wk", "Wv")},
            "bk": torch.randn(4, generator=rng),
        },
    }
    return true | {""")
