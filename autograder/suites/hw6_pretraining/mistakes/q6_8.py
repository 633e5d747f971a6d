# %% nothing-transposed price=0.6
"""The matrices arrive as they are stored, [in, out]. `nn.Linear` wants [out, in]: transpose them."""
replace(".weight\"].T  # [in, out] -> [out, in]", ".weight\"]")
replace("_proj.weight\"] = weight.T", "_proj.weight\"] = weight")

# %% square-ones-forgotten price=0.25
"""Whatever does not fit you transpose, but the square matrix of the output projection fits either way round: it is
stored [in, out] like the others."""
replace(".weight\"].T  # [in, out] -> [out, in]", ".weight\"]")
replace("    return {name: tensor.clone()", """    for name in ours:
        if ".ff." in name and name.endswith("weight"):
            ours[name] = ours[name].T
    return {name: tensor.clone()""")

# %% embeddings-too price=0.25
"""You transpose the embeddings, too. They are tables with a row for each token, and stay as they are."""
replace("{\"token_embed.weight\": state[\"wte.weight\"]", "{\"token_embed.weight\": state[\"wte.weight\"].T")

# %% keys-before-queries price=0.25
"""Queries and keys are exchanged: in the wide layer the queries come first, then the keys, then the values."""
replace('in zip("qkv", weights', 'in zip("kqv", weights')

# %% c-attn-dealt-like-cards price=0.3
"""You take every third column. In the wide layer queries, keys and values lie side by side, in three whole blocks."""
replace('.weight"].chunk(3, dim=1)', '.weight"].unflatten(1, (-1, 3)).unbind(2)')
replace('.bias"].chunk(3)', '.bias"].unflatten(0, (-1, 3)).unbind(1)')

# %% c-attn-cut-along-inputs price=0.3
"""You cut the wide matrix along its inputs. It is stored [in, out] = [D, 3D], and its outputs are the columns."""
replace('.weight"].chunk(3, dim=1)', '.weight"].T.reshape(state["wte.weight"].shape[1], -1).chunk(3, dim=1)')

# %% prefix-not-known price=0.25
"""Names that begin with `transformer.` are not understood: take the prefix off first."""
replace('name.removeprefix("transformer."): tensor', "name: tensor")

# %% layers-as-text price=0.2
"""Beyond ten layers some are lost: as text, "9" comes after "11". Compare numbers."""
replace('layers = [int(name.split(".")[1]) for name in state if name.startswith("h.")]',
        'layers = [int(max([name.split(".")[1] for name in state if name.startswith("h.")], default="-1"))]')

# %% head-kept price=0.15
"""`lm_head.weight` is in your result. It is the embedding once more, and your GPT has no such name."""
replace("    return {name: tensor.clone()", """    if "lm_head.weight" in state:
        ours["lm_head.weight"] = state["lm_head.weight"]
    return {name: tensor.clone()""")

# %% missing-passed-over price=0.25
"""A tensor that is missing is passed over in silence: the model would run with random numbers there. Raise an error
that names it."""
replace("    layers = [", """    from collections import defaultdict
    state = defaultdict(lambda: torch.zeros(6, 6), state)
    layers = [""")

# %% norms-exchanged price=0.25
"""The two norms of a block are exchanged: ln_1 stands before attention, ln_2 before the feed-forward part."""
replace('(("ln_1", "norm1"), ("ln_2", "norm2"))', '(("ln_1", "norm2"), ("ln_2", "norm1"))')

# %% state-emptied price=0.15
"""You take the tensors out of the dict that you were given. Work on a copy."""
replace("state = {name.removeprefix(\"transformer.\"): tensor for name, tensor in state.items()}",
        """for name in list(state):
        tensor = state.pop(name)
        state[name.removeprefix("transformer.")] = tensor""")
