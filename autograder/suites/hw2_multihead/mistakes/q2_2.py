# %% scaled-by-model-width
"""Your scores are divided by the root of d_model: the dot product of one head runs over Dh numbers only, so the
weights come out too flat. With one head you would not notice."""
replace("key_padding_mask, causal)", "key_padding_mask, causal, beta=1 / math.sqrt(query.shape[-1]))")

# %% view-without-transpose
"""Your heads have the right shape and the wrong numbers: a `view` straight to [B, H, N, Dh] cuts each head out
of several tokens. Your own split_heads of the last question does it right."""
replace("split_heads(self.q_proj(query), self.n_heads)",
        "self.q_proj(query).view(len(query), self.n_heads, query.shape[1], -1)")
replace("split_heads(self.k_proj(key), self.n_heads)",
        "self.k_proj(key).view(len(key), self.n_heads, key.shape[1], -1)")
replace("split_heads(self.v_proj(value), self.n_heads)",
        "self.v_proj(value).view(len(value), self.n_heads, value.shape[1], -1)")
replace("merge_heads(heads)", "heads.reshape(query.shape)")

# %% heads-interleaved
"""Your heads take every H-th column of the projections. Head h is a block of Dh neighbouring columns: with the
weights of nn.MultiheadAttention the two do not agree."""
replace("split_heads(self.q_proj(query), self.n_heads)",
        "self.q_proj(query).unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)")
replace("split_heads(self.k_proj(key), self.n_heads)",
        "self.k_proj(key).unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)")
replace("split_heads(self.v_proj(value), self.n_heads)",
        "self.v_proj(value).unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)")
replace("merge_heads(heads)", "heads.permute(0, 2, 3, 1).flatten(2)")

# %% one-head
"""Your weights are the same for every head: the projections are never split, so one head of width d_model does
all the work."""
replace("split_heads(self.q_proj(query), self.n_heads)", "self.q_proj(query)[:, None]")
replace("split_heads(self.k_proj(key), self.n_heads)", "self.k_proj(key)[:, None]")
replace("split_heads(self.v_proj(value), self.n_heads)", "self.v_proj(value)[:, None]")
replace("merge_heads(heads)), weights", "merge_heads(heads)), weights.expand(-1, self.n_heads, -1, -1)")

# %% o-proj-forgotten
"""You return the merged heads: `o_proj` exists but is never applied. Without it the heads never exchange
anything."""
replace("self.o_proj(merge_heads(heads))", "merge_heads(heads)")

# %% o-proj-without-bias price=0.2
"""Your output lacks `o_proj`'s bias: with `bias=True` all four projections have one, as in
nn.MultiheadAttention."""
replace("self.o_proj(merge_heads(heads))", "F.linear(merge_heads(heads), self.o_proj.weight)")

# %% bias-argument-ignored price=0.1
"""`bias=False` changes nothing in your layer: the argument never reaches the four projections."""
replace("super().__init__()", """super().__init__()
        bias = True""")

# %% values-from-key price=0.25
"""Your values are computed from `key`. In self-attention nobody sees it; give three different tensors and look
again."""
replace("self.v_proj(value)", "self.v_proj(key)")

# %% query-length-for-keys
"""With fewer queries than keys your layer stops or scrambles: keys and values are reshaped with the length of
the query. In cross-attention the two lengths differ."""
replace("split_heads(self.k_proj(key), self.n_heads)",
        "self.k_proj(key).view(*query.shape[:2], self.n_heads, -1).transpose(1, 2)")
replace("split_heads(self.v_proj(value), self.n_heads)",
        "self.v_proj(value).view(*query.shape[:2], self.n_heads, -1).transpose(1, 2)")

# %% padding-polarity-inverted price=0.25
"""You attend to the padding only: on the card True means padding, and you read True as "may be attended to"."""
replace("key_padding_mask, causal)", "None if key_padding_mask is None else ~key_padding_mask, causal)")

# %% padding-on-queries
"""Your padding mask blocks rows instead of columns: it stands on the query axis. Padding is about keys; a
padded key must lose its weight in every row."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """heads, weights = attention(q, k, v, None, causal)
        if key_padding_mask is not None:
            weights = weights.masked_fill(key_padding_mask[:, None, :, None], 0.0)
        heads = weights @ v""")

# %% padding-repeated-in-wrong-order price=0.25
"""Sentences get one another's padding: when you repeat the mask for the heads, the copies of one sentence must
stay together, because the batch axis comes before the head axis."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """heads, weights = attention(q, k, v, None, causal)
        if key_padding_mask is not None:
            repeated = key_padding_mask.repeat(self.n_heads, 1).view(len(q), self.n_heads, 1, -1)
            weights = F.normalize(weights.masked_fill(repeated, 0.0), 1, -1)
        heads = weights @ v""")

# %% masked-after-softmax
"""Your rows sum to less than 1 where something is blocked: the weights are zeroed after the softmax, when
blocked keys have already had their share of the denominator. Block the scores."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """blocked = attention(q, k, v, key_padding_mask, causal, beta=0.0)[1] == 0
        weights = attention(q, k, v)[1].masked_fill(blocked, 0.0)
        heads = weights @ v""")

# %% causal-top-left price=0.25
"""With fewer queries than keys your causal mask starts in the wrong corner: the last query must see every key,
so the triangle is aligned at the bottom right."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """weights = attention(q, k, v, key_padding_mask)[1]
        weights = F.normalize(weights.tril(), 1, -1) if causal else weights
        heads = weights @ v""")

# %% one-mask-at-a-time price=0.2
"""Each of your masks works alone. Given both, only the padding is honoured and the future can be seen: an
`elif` or an overwritten mask lets one of them win. A key is blocked if either says so."""
replace("key_padding_mask, causal)", "key_padding_mask, causal and key_padding_mask is None)")

# %% dead-rows-nan price=0.2
"""A row with every key blocked gives NaN: a softmax over nothing but -inf is 0 / 0. The card asks for zero
weights there, so that the output is `o_proj`'s bias."""
replace("if self.training", """weights = weights / weights.sum(-1, keepdim=True)
        heads = weights @ v
        if self.training""")

# %% dead-rows-uniform price=0.2
"""A row with every key blocked gets uniform weights: when every score is the same large negative number, the
softmax cannot tell that nothing may be seen. Such rows are zero."""
replace("if self.training", """weights = weights + (weights.sum(-1, keepdim=True) == 0) / key.shape[1]
        heads = weights @ v
        if self.training""")

# %% dead-rows-without-bias price=0.1
"""Where every key is blocked you set the whole output to zero. Attention is zero there, and `o_proj` still adds
its bias."""
replace("return self.o_proj(merge_heads(heads)), weights",
        """dead = (weights == 0).all(-1)[:, 0, :, None]  # [B, T, 1]
        return self.o_proj(merge_heads(heads)).masked_fill(dead, 0.0), weights""")

# %% weights-averaged-over-heads price=0.15
"""Your weights have shape [B, T, S]: the average over the heads, which is what nn.MultiheadAttention returns by
default. Return those of each head, [B, H, T, S]."""
replace("merge_heads(heads)), weights", "merge_heads(heads)), weights.mean(1)")

# %% dropout-active-in-eval price=0.15
"""In evaluation mode two calls with the same input differ: `F.dropout` is active unless you tell it about
`self.training`."""
replace("if self.training and self.dropout > 0:", "if self.dropout > 0:")

# %% dropout-on-output price=0.15
"""Your dropout acts on something else than the attention weights: on the values, on the heads or on the output.
Inside this layer it acts on the weights, after the softmax and before they meet the values."""
replace("heads = F.dropout(weights, self.dropout) @ v",
        "return F.dropout(self.o_proj(merge_heads(heads)), self.dropout), weights")

# %% dropout-ignored price=0.15
"""In training mode your layer drops nothing, whatever `dropout` says: the argument is never used."""
replace("if self.training and self.dropout > 0:", "if False:")

# %% no-value-error price=0.1
"""A width that does not split evenly goes through, or stops with some other error. Refuse it when the layer is made,
with `raise ValueError(...)`."""
replace("if d_model % n_heads:", "if False:")

# %% dropout-on-scores price=0.15
"""Your dropout acts on the scores, before the softmax: a score set to 0 is not a key that is dropped, and a key that
is alone keeps its weight. Drop weights after the softmax."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """blocked = attention(q, k, v, key_padding_mask, causal, beta=0.0)[1] == 0
        scores = F.dropout(q @ k.mT / math.sqrt(q.shape[-1]), self.dropout, self.training)
        weights = softargmax(scores.masked_fill(blocked, -math.inf))""")
replace("""if self.training and self.dropout > 0:
            heads = F.dropout(weights, self.dropout) @ v""",
        "heads = weights @ v")

# %% dropout-rate-fixed price=0.1
"""Your layer drops half of the weights whatever `dropout` says: pass the number that the module was made with."""
replace("self.dropout = dropout", "self.dropout = 0.5 if dropout else 0.0")

# %% dropout-without-masks-only price=0.1
"""Your dropout is forgotten when there is a causal mask: in training mode weights are dropped with every mask."""
replace("if self.training and", "if not causal and self.training and")

# %% mask-of-an-earlier-call price=0.2
"""Your module keeps the mask of its first call and uses it again when the shapes are the same. Padding differs from
call to call: make the mask anew."""
replace("heads, weights = attention(", """kept = self.__dict__.setdefault("kept", {})
        if key_padding_mask is not None:
            key_padding_mask = kept.setdefault(key_padding_mask.shape, key_padding_mask)
        heads, weights = attention(""")

# %% parameter-too-many price=0.15
"""Your module has a parameter besides the four projections. Weights are put in by name, and one that is not asked for
would never be set: a constant is a plain attribute or a buffer."""
replace("self.dropout = dropout", """self.dropout = dropout
        self.temperature = nn.Parameter(torch.ones(()))""")
replace("self.q_proj(query)", "self.q_proj(query * self.temperature)")

# %% softmax-overflows price=0.2
"""With large scores your output is NaN or wrong: exp overflows. Subtract the largest score of each row first, which
changes nothing in the weights."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """blocked = attention(q, k, v, key_padding_mask, causal, beta=0.0)[1] == 0
        e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(blocked, 0.0)
        weights = e / e.sum(-1, keepdim=True).masked_fill(blocked.all(-1, keepdim=True), 1.0)
        heads = weights @ v""")

# %% causal-more-queries-than-keys price=0.1
"""With more queries than keys your causal mask is that of a triangle in the upper left corner. The last query is level
with the last key there too, so the first T - S queries see nothing."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """weights = attention(q, k, v, key_padding_mask)[1]
        weights = F.normalize(weights.tril(max(key.shape[1] - query.shape[1], 0)), 1, -1) if causal else weights
        heads = weights @ v""")

# %% causal-ignored price=0.25
"""Your `causal=True` changes nothing here: query i still sees keys after its own place. Is the argument used on every
path, in eval mode too?"""
replace("key_padding_mask, causal)", "key_padding_mask)")

# %% nothing-left-by-two-masks price=0.1
"""A query can lose all its keys by the two masks together, though neither blocks them all: with padding on the left the
first queries of a causal layer see nothing. Your weights are NaN there. Ask for such rows once both masks are in."""
replace("if self.training",
        """alone = attention(q, k, v, key_padding_mask)[1].sum(-1) * attention(q, k, v, causal=causal)[1].sum(-1)
        weights = weights.masked_fill(((weights.sum(-1) == 0) & (alone > 0))[..., None], math.nan)
        heads = weights @ v
        if self.training""")

# %% values-from-query-if-shared price=0.1
"""Where query and key are one tensor your layer takes the values from it too. `value` may still be another: project it,
whatever the others are."""
replace("self.v_proj(value)", "self.v_proj(query if key is query else value)")

# %% weights-detached price=0.1
"""The weights that you return are cut off from the graph: a loss on them would teach nothing. Return them without
`detach`."""
replace("merge_heads(heads)), weights", "merge_heads(heads)), weights.detach()")

# %% dropout-shared-by-heads price=0.1
"""In training mode all your heads lose the same weights: one dropout mask is made and used for every head. Each weight
of each head is dropped on its own."""
replace("F.dropout(weights, self.dropout) @ v",
        "weights * F.dropout(torch.ones_like(weights[:, :1]), self.dropout) @ v")

# %% float32-inside price=0.15
"""Your results have the precision of float32 in a float64 layer: somewhere a number is made in float32, such as
`torch.tensor(d_head)` under a root, or a softmax with its own dtype. Use `math.sqrt`, and keep the input's dtype."""
replace("key_padding_mask, causal)",
        "key_padding_mask, causal, beta=float(torch.tensor(q.shape[-1]).float().rsqrt()))")

# %% dropout-not-scaled price=0.15
"""What your dropout leaves is not scaled by 1 / (1 - dropout): in training the weights are too small on average, or were
divided by their sum again. `F.dropout` and `nn.Dropout` scale as they drop, and nothing else is needed."""
replace("heads = F.dropout(weights, self.dropout) @ v",
        "heads = weights * (torch.rand_like(weights) >= self.dropout) @ v")

# %% dropout-as-share-kept price=0.15
"""You drop a share of 1 - dropout of the weights. `dropout` is the share that is lost, not the one that is kept."""
replace("F.dropout(weights, self.dropout)", "F.dropout(weights, 1 - self.dropout)")

# %% another-rows-mask
"""Each example is masked with another example's padding: row b of the mask belongs to example b."""
replace("key_padding_mask, causal)", "None if key_padding_mask is None else key_padding_mask.roll(1, 0), causal)")

# %% first-rows-mask
"""Every example is masked with the padding of the first: the batch axis of the mask is lost."""
replace("key_padding_mask, causal)",
        "None if key_padding_mask is None else key_padding_mask[:1].expand_as(key_padding_mask), causal)")

# %% heads-cut-the-input
"""Each of your heads projects its own slice of the input. A head projects the *whole* input, through its block of rows:
project first, split afterwards."""
replace("q = split_heads(self.q_proj(query), self.n_heads)", """q, k, v = (
            torch.stack([F.linear(x.chunk(self.n_heads, -1)[h], blocks[h].chunk(self.n_heads, 1)[h],
                                  None if p.bias is None else p.bias.chunk(self.n_heads)[h])
                         for blocks in [p.weight.chunk(self.n_heads)] for h in range(self.n_heads)], 1)
            for x, p in ((query, self.q_proj), (key, self.k_proj), (value, self.v_proj)))""")
replace("        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]\n", "")
replace("        v = split_heads(self.v_proj(value), self.n_heads)  # [B, H, S, Dh]\n", "")

# %% padded-values-zeroed
"""You put the *values* of padded keys to zero. Their scores still take part in the softmax, so they take weight away
from the others. Block the scores."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal)",
        """if key_padding_mask is not None:
            v = v.masked_fill(key_padding_mask[:, None, :, None], 0.0)
        heads, weights = attention(q, k, v, None, causal)""")

# %% merged-without-transpose
"""Your weights are right and the output is not: the heads are merged by a bare reshape, while the head axis still stands
before the tokens. Your merge_heads of the last question does it right."""
replace("merge_heads(heads)", "heads.reshape(query.shape)")
