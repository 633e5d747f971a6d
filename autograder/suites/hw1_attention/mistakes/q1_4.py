# %% concat-order-swapped
"""You stack [context; query], so each half of W_f meets the wrong vector. The query (the decoder's state)
comes first."""
replace("[query, context]", "[context, query]")

# %% tanh-forgotten
"""Entries of your h_tilde leave (-1, 1): the tanh after W_f is missing."""
replace("torch.tanh(torch.cat([query, context], dim=-1) @ W_f.T)", "torch.cat([query, context], dim=-1) @ W_f.T")

# %% last-encoder-state-for-query
"""Beside the context you put the encoder's last state. The first half of the pair is the query, the decoder's
own state."""
replace("[query, context]", "[keys[:, -1], context]")

# %% context-only
"""Your h_tilde uses the context and drops the query: both enter, side by side, through the two halves of
W_f."""
replace("torch.cat([query, context], dim=-1) @ W_f.T", "context @ W_f[:, query.shape[1] :].T")

# %% softmax-over-batch
"""Your weights sum to 1 down the batch, so the sentences compete with one another. They must sum to 1 over
the S keys of each sentence: look at the axis of the softmax."""
replace("softargmax(luong_scores(query, keys, kind, W, v))",
        "softargmax(luong_scores(query, keys, kind, W, v), dim=0)")

# %% scores-for-weights
"""You mix the keys with the raw scores: your weights are negative in places and do not sum to 1. The softmax
is missing."""
replace("softargmax(luong_scores(query, keys, kind, W, v))", "luong_scores(query, keys, kind, W, v)")

# %% scores-scaled
"""You divide the scores by sqrt(D) before the softmax. That scale belongs to the Transformer's attention
(q1_7); Luong's step has none."""
replace("luong_scores(query, keys, kind, W, v)", "luong_scores(query, keys, kind, W, v) / math.sqrt(query.shape[-1])")

# %% context-is-plain-mean
"""Your context is the plain mean of the keys: the weights are computed and returned, but never used to mix
them."""
replace('torch.einsum("bs,bsd->bd", weights, keys)', "keys.mean(1)")

# %% kind-ignored
"""Your step scores with "dot" whatever `kind` says: pass kind, W and v on to luong_scores."""
replace("luong_scores(query, keys, kind, W, v)", 'luong_scores(query, keys, "dot")')

# %% results-swapped price=0.2
"""You return (weights, h_tilde): the order asked for is h_tilde first, then the weights."""
replace("return h_tilde, weights", "return weights, h_tilde")

# %% scores-returned
"""Your h_tilde is right, but the second thing you return is the scores. Return the weights, after the softmax: they
are positive, and each row sums to 1."""
replace("return h_tilde, weights", "return h_tilde, luong_scores(query, keys, kind, W, v)")

# %% square-matrix-not-transposed
"""You tell by its shape whether W_f must be transposed, and a square one fools you. W_f is [E, 2D], also where E
happens to be 2D: multiply by its transpose always."""
replace("@ W_f.T)", "@ (W_f if len(W_f) == W_f.shape[1] else W_f.T))")

# %% exponentials-overflow price=0.2
"""Your weights are NaN where scores are large: the exponential of 1000 is infinity. Use your softargmax, or
`torch.softmax`: both subtract the largest score first."""
replace("weights = softargmax(luong_scores(query, keys, kind, W, v))",
        """e = torch.exp(luong_scores(query, keys, kind, W, v))
    weights = e / e.sum(-1, keepdim=True)""")

# %% another-rows-keys
"""The context of each example is made of another example's keys: weights b and keys b belong together."""
replace('torch.einsum("bs,bsd->bd", weights, keys)', 'torch.einsum("bs,bsd->bd", weights, keys.roll(1, 0))')

# %% weights-detached
"""The values are right, but the weights are detached before the context is made: no gradient reaches the scores, so the
model would never learn where to look."""
replace('torch.einsum("bs,bsd->bd", weights, keys)', 'torch.einsum("bs,bsd->bd", weights.detach(), keys)')

# %% small-number-in-the-sum price=0.15
"""Your weights sum to a little less than 1: a small number stands in the denominator of the softmax, and it is not
needed."""
replace("context = torch", """weights = weights / (1 + 1e-6)
    context = torch""")

# %% v-not-handed-on
"""The "concat" score gets no `v` from you: hand on kind, W *and* v to luong_scores."""
replace("luong_scores(query, keys, kind, W, v)", "luong_scores(query, keys, kind, W)")

# %% first-rows-keys
"""Every context is made of the first example's keys: the batch axis of the keys is lost."""
replace('torch.einsum("bs,bsd->bd", weights, keys)', "weights @ keys[0]")
