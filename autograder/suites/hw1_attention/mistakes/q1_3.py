# %% general-transposed
"""Your "general" score is key^T W query: the matrix is applied to the wrong side. The query stands on the
left of W."""
replace("bd,de,bse->bs", "be,de,bsd->bs")

# %% concat-without-tanh
"""Your "concat" score is linear in the query and the keys: the tanh between W and v is missing."""
replace('torch.tanh(torch.einsum("bsc,ac->bsa", both, W))', 'torch.einsum("bsc,ac->bsa", both, W)')

# %% concat-order-swapped
"""In "concat" you stack [key; query], so the left half of W meets the keys. The query comes first."""
replace("[query[:, None].expand_as(keys), keys]", "[keys, query[:, None].expand_as(keys)]")

# %% concat-two-tanhs
"""In "concat" you squash the query's part and the key's part separately and then add them; the tanh acts
once, on the sum of both parts. As you have it, query and key never interact."""
replace('hidden = torch.tanh(torch.einsum("bsc,ac->bsa", both, W))',
        "hidden = torch.tanh(query @ W[:, : keys.shape[-1]].T)[:, None] + torch.tanh(keys @ W[:, keys.shape[-1] :].T)")

# %% concat-ignores-v
"""In "concat" you add up the hidden units instead of weighing them with v: v is never used."""
replace('torch.einsum("bsa,a->bs", hidden, v)', "hidden.sum(-1)")

# %% location-looks-at-keys
"""Your "location" score changes with the keys, but it is blind to them: row s of W scores place s from the
query alone."""
replace('"bd,sd->bs", query, W', '"sd,bsd->bs", W, keys')

# %% dot-scaled
"""You divide the "dot" score by sqrt(D). That scale belongs to the Transformer's attention (q1_7); Luong's
dot product is plain."""
replace('"bd,bsd->bs", query, keys)', '"bd,bsd->bs", query, keys) / math.sqrt(query.shape[-1])')

# %% weights-for-scores
"""Your rows sum to 1: these are already the weights. The scores are what goes into the softmax; that comes in
q1_4."""
_right = luong_scores


def luong_scores(query, keys, kind, W=None, v=None):
    return torch.softmax(_right(query, keys, kind, W, v), -1)

# %% batch-mixed
"""Your scores compare each query with the keys of the whole batch: row b may only use the keys of row b, so
the batch axis must not be summed over."""
replace("bd,bsd->bs", "bd,csd->bs")
replace("bd,de,bse->bs", "bd,de,cse->bs")

# %% parameters-detached price=0.3
"""The scores are right, but W gets no gradient: it is detached (or its `.data` is taken), so it would never learn."""
replace('if kind == "dot":', """W = None if W is None else W.detach()
    if kind == "dot":""")

# %% another-rows-query
"""Each example's keys are compared with another example's query: row b of the scores belongs to query b and keys b."""
replace('if kind == "dot":', """query = query.roll(1, 0)
    if kind == "dot":""")

# %% first-query-for-all
"""Every example is scored with the query of the first: the batch axis of the query is lost."""
replace('if kind == "dot":', """query = query[:1].expand_as(query)
    if kind == "dot":""")

# %% location-transposed
"""Your "location" scores come out as [S, B]: a batch stands first, [B, S]."""
replace('torch.einsum("bd,sd->bs", query, W)', "W @ query.T")

# %% keys-detached price=0.3
"""The scores are right, but the keys get no gradient: they are detached, so the encoder would never learn from them."""
replace('if kind == "dot":', """keys = keys.detach()
    if kind == "dot":""")

# %% float32-inside price=0.2
"""Your scores have the digits of float32, or come back in it, whatever dtype comes in."""
replace('return torch.einsum("bd,bsd->bs", query, keys)',
        'return torch.einsum("bd,bsd->bs", query.float(), keys.float()).to(query.dtype)')

# %% concat-queries-repeated-in-wrong-order
"""In "concat" the examples of the batch get one another's queries: `repeat` lays the whole batch one after the other, so
cutting it into rows of S mixes them. Give the query an axis for the keys, `query[:, None]`, and expand that."""
replace("query[:, None].expand_as(keys)", "query.repeat(keys.shape[1], 1).reshape(keys.shape)")

# %% general-first-query-for-all
"""In "general" every example is scored with the query of the first: the batch axis of the query is lost."""
replace('"bd,de,bse->bs", query, W, keys', '"d,de,bse->bs", query[0], W, keys')

# %% concat-relu
"""In "concat" the hidden layer goes through another function than tanh: your scores grow without bound."""
replace("torch.tanh(torch", "torch.relu(torch")

# %% location-matrix-not-transposed
"""In "location" you multiply `query @ W`. W is [S, D], a row for each place: rows of queries are multiplied by its
transpose, also where it happens to be square."""
replace('torch.einsum("bd,sd->bs", query, W)', "query @ W")
