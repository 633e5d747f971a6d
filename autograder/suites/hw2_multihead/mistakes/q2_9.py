# %% number-of-windows price=0.25
"""You make `window` windows. The argument is how many tokens a window holds; their number is N / window."""
replace("x.unflatten(1, (-1, window))", "x.unflatten(1, (window, -1))")

# %% tokens-dealt-out price=0.25
"""Your windows take every (N / window)-th token. A window is a block of neighbours: after the reshape, its
tokens lie along the inner axis."""
replace("x.unflatten(1, (-1, window))", "x.unflatten(1, (window, -1)).transpose(1, 2)")
replace("attention(q, k, v)[0].flatten(1, 2)", "attention(q, k, v)[0].transpose(1, 2).flatten(1, 2)")

# %% sliding-window price=0.25
"""Each of your tokens looks at the neighbours around it, so windows overlap. Here the sequence is cut into
separate blocks: token 0 of a block sees the whole block and nothing before it."""
replace("q, k, v = (x.unflatten(1, (-1, window)) for x in (q, k, v))",
        """i = torch.arange(q.shape[1], device=q.device)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill((i[:, None] - i).abs() >= window, -math.inf)""")
replace("attention(q, k, v)[0].flatten(1, 2)", "softargmax(scores) @ v")

# %% windows-not-put-back price=0.25
"""Your output has an axis too many: the windows are never laid one after the other again."""
replace("attention(q, k, v)[0].flatten(1, 2)", "attention(q, k, v)[0]")

# %% window-ignored price=0.25
"""Your result is full attention: tokens see other windows too."""
replace("x.unflatten(1, (-1, window))", "x[:, None]")

# %% keys-of-first-window price=0.25
"""Every window of yours looks at the keys of the first one: keys and values have to be cut with the queries."""
replace("attention(q, k, v)[0].flatten", "attention(q, k[:, :1].expand_as(k), v[:, :1].expand_as(v))[0].flatten")

# %% remainder-accepted price=0.1
"""A length that is no multiple of the window goes through, with a shorter window at the end. The contract says
ValueError."""
def window_attention(q, k, v, window):
    parts = zip(*(x.split(window, -2) for x in (q, k, v)), strict=True)
    return torch.cat([attention(*part)[0] for part in parts], -2)

# %% remainder-cut-off price=0.1
"""A length that is no multiple of the window loses its last tokens without a word. The contract says
ValueError."""
replace('raise ValueError(f"window = {window} does not divide N = {q.shape[1]}")',
        "q, k, v = (x[:, : x.shape[1] // window * window] for x in (q, k, v))")

# %% scaled-by-window price=0.25
"""Inside a window you scale by the root of its size. The dot product still runs over the width of the
vectors."""
replace("attention(q, k, v)[0].flatten(1, 2)", "attention(q, k, v, beta=window**-0.5)[0].flatten(1, 2)")

# %% window-weights-returned-too price=0.15
"""You return a pair. Both functions return `out` alone."""
replace("return attention(q, k, v)[0].flatten(1, 2)", """out, weights = attention(q, k, v)
    return out.flatten(1, 2), weights""")

# %% channel-scaled-by-width price=0.2
"""Your channel attention scales by the root of D. Now the dot product of two channels runs over the N
tokens."""
replace("attention(q.mT, k.mT, v.mT)", "attention(q.mT, k.mT, v.mT, beta=q.shape[-1] ** -0.5)")

# %% channel-unscaled price=0.2
"""Your channel scores are plain dot products over N tokens: the weights are far too sharp. The scale is one
over the root of what the dot product runs over."""
replace("attention(q.mT, k.mT, v.mT)", "attention(q.mT, k.mT, v.mT, beta=1.0)")

# %% channel-not-transposed-back price=0.2
"""Your channel attention returns [B, D, N]: transpose the result back, tokens before channels."""
replace("attention(q.mT, k.mT, v.mT)[0].mT", "attention(q.mT, k.mT, v.mT)[0]")

# %% channel-is-ordinary-attention price=0.2
"""Your channel attention lets tokens look at tokens. Channels are the tokens here: transpose all three
first."""
replace("attention(q.mT, k.mT, v.mT)[0].mT", "attention(q, k, v)[0]")

# %% channel-softmax-over-queries price=0.2
"""Your channel weights sum to 1 over the query channels: v times softmax(q^T k) from the right normalises the
wrong axis. Write it as attention(q^T, k^T, v^T) and transpose the whole."""
replace("attention(q.mT, k.mT, v.mT)[0].mT", "v @ attention(q.mT, k.mT, v.mT)[1]")

# %% channel-values-not-transposed price=0.2
"""Your channel weights meet the values from the wrong side, untransposed: reshaping the result makes the shape
right, not the numbers."""
replace("attention(q.mT, k.mT, v.mT)[0].mT", "attention(q.mT, k.mT, v.mT)[0].reshape(v.shape)")

# %% cost-half price=0.15
"""You have half of the cost. Either one of the two products is missing (after the scores, the weights meet the
values), or you count a multiplication and its addition as one operation: they are two."""
replace('{"patches": 4 * N * N * D, "channels": 4 * N * D * D}',
        '{"patches": 2 * N * N * D, "channels": 2 * N * D * D}')

# %% cost-quarter price=0.15
"""You have a quarter of the cost: one product instead of two, and a multiplication and its addition counted as
one."""
replace('{"patches": 4 * N * N * D, "channels": 4 * N * D * D}', '{"patches": N * N * D, "channels": N * D * D}')

# %% cost-kinds-swapped price=0.15
"""Your two kinds are the wrong way round: between patches the matrix is N by N, between channels D by D."""
replace('{"patches": 4 * N * N * D, "channels": 4 * N * D * D}',
        '{"patches": 4 * N * D * D, "channels": 4 * N * N * D}')

# %% cost-projections-counted price=0.15
"""You count the projections too. The question is about the two products of attention alone."""
replace("return {", "return 8 * N * D * D + {")

# %% cost-entries-only price=0.15
"""You count the entries of the attention matrix. Each of them is a dot product, with as many multiply-adds as
the vectors are long."""
replace('{"patches": 4 * N * N * D, "channels": 4 * N * D * D}', '{"patches": 4 * N * N, "channels": 4 * D * D}')

# %% cost-same-for-both price=0.15
"""Your cost does not depend on the kind. Transposing swaps the roles of N and D: which one is squared?"""
replace('"channels": 4 * N * D * D', '"channels": 4 * N * N * D')

# %% stride-blocks-for-strides price=0.25
"""Your strided attention cuts neighbouring blocks. Token i sees the tokens whose places are equal modulo the stride: 0, s,
2s and so on are one group."""
replace("x.unflatten(1, (-1, stride)).transpose(1, 2)", "x.unflatten(1, (-1, stride))")
replace("out.transpose(1, 2).flatten(1, 2)", "out.flatten(1, 2)")

# %% stride-order-lost price=0.25
"""Your strided attention gives the outputs group after group. Put them back to where their tokens stand: the first output
belongs to token 0, the second to token 1."""
replace("out.transpose(1, 2).flatten(1, 2)", "out.flatten(1, 2)")

# %% stride-many-tokens-apart price=0.25
"""Your groups hold `stride` tokens each, N / stride places apart. It is the other way round: the tokens of a group lie
`stride` places apart, and there are N / stride of them."""
replace("x.unflatten(1, (-1, stride)).transpose(1, 2)", "x.unflatten(1, (stride, -1)).transpose(1, 2)")

# %% stride-ignored price=0.25
"""Your strided attention is full attention: tokens of other groups are seen too."""
replace("x.unflatten(1, (-1, stride)).transpose(1, 2)", "x[:, None]")
replace("out.transpose(1, 2).flatten(1, 2)", "out[:, 0]")

# %% stride-remainder-accepted price=0.1
"""A length that is no multiple of the stride goes through. The contract says ValueError."""
def strided_attention(q, k, v, stride):
    out = torch.empty_like(q)
    for r in range(stride):
        out[:, r::stride] = attention(q[:, r::stride], k[:, r::stride], v[:, r::stride])[0]
    return out

# %% stride-only-earlier-tokens price=0.25
"""A token of yours sees only the tokens of its group that stand before it. Here it sees the whole group, later ones
too."""
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k, v, causal=True)")

# %% stride-scaled-by-group price=0.25
"""In a group you scale by the root of its size. The dot product still runs over the width of the vectors."""
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k, v, beta=q.shape[2] ** -0.5)")

# %% stride-keys-of-the-next-group price=0.25
"""Every group of yours looks at the keys and values of another group: deal out all three in the same way."""
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k.roll(1, 1), v.roll(1, 1))")

# %% keys-of-the-first-example
"""All examples of a batch look at the keys and values of the first one. Each example has its own: keep axis 0 apart."""
replace("attention(q, k, v)[0].flatten", "attention(q, k[:1].expand_as(k), v[:1].expand_as(v))[0].flatten")
replace("out, _ = attention(q, k, v)", "out, _ = attention(q, k[:1].expand_as(k), v[:1].expand_as(v))")

# %% float32-inside price=0.15
"""Your results have the right dtype and lost half of their digits: something is computed in float32 on the way."""
replace("return attention(q, k, v)[0].flatten(1, 2)",
        "return attention(q.float(), k.float(), v.float())[0].flatten(1, 2).to(v.dtype)")
replace("out, _ = attention(q, k, v)", "out = attention(q.float(), k.float(), v.float())[0].to(v.dtype)")
replace("attention(q.mT, k.mT, v.mT)[0].mT", "attention(q.float().mT, k.float().mT, v.float().mT)[0].mT.to(v.dtype)")

# %% no-gradient price=0.25
"""Your numbers are right, but no gradient reaches the inputs: they are detached, or the work is done outside torch.
These are parts of models, and have to learn."""
replace("x.unflatten(1, (-1, window))", "x.detach().unflatten(1, (-1, window))")
replace("x.unflatten(1, (-1, stride))", "x.detach().unflatten(1, (-1, stride))")
replace("attention(q.mT, k.mT, v.mT)", "attention(q.detach().mT, k.detach().mT, v.detach().mT)")

# %% weights-detached price=0.25
"""Gradients reach the values, and neither queries nor keys: the attention weights are detached, so what to look at is
never learned."""
replace("attention(q, k, v)[0].flatten(1, 2)", "(attention(q, k, v)[1].detach() @ v).flatten(1, 2)")
replace("out, _ = attention(q, k, v)", "out = attention(q, k, v)[1].detach() @ v")
replace("attention(q.mT, k.mT, v.mT)[0].mT", "(attention(q.mT, k.mT, v.mT)[1].detach() @ v.mT).mT")

# %% softmax-overflows price=0.15
"""With large scores your output is NaN: exp overflows. Subtract the largest score of each row first, or use a softmax
that does."""
replace("return attention(q, k, v)[0]", """e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    return (e / e.sum(-1, keepdim=True) @ v)""")
replace("out, _ = attention(q, k, v)", """e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    out = e / e.sum(-1, keepdim=True) @ v""")
replace("return attention(q.mT, k.mT, v.mT)[0].mT", """e = torch.exp(q.mT @ k / math.sqrt(q.shape[1]))
    return v @ (e / e.sum(-1, keepdim=True)).mT""")

# %% channel-softmax-down-the-columns price=0.2
"""Your channel weights sum to 1 over the query channels: the softmax runs over the wrong axis of q^T k. Each row belongs
to one query channel, so it runs over the last axis."""
replace("attention(q.mT, k.mT, v.mT)[0].mT", "(softargmax(q.mT @ k / math.sqrt(q.shape[1]), dim=1) @ v.mT).mT")

# %% channel-softmax-overflows price=0.15
"""With large scores your channel attention is NaN: exp overflows. `attention` and `torch.softmax` subtract the largest
score first."""
replace("attention(q.mT, k.mT, v.mT)[0].mT", """(lambda e: v @ (e / e.sum(-1, keepdim=True)).mT)(
        torch.exp(q.mT @ k / math.sqrt(q.shape[1])))""")

# %% windows-of-the-next-example price=0.25
"""The windows of each example look at another example's keys: a batch keeps its rows apart."""
replace("q, k, v = (x.unflatten(1, (-1, window)) for x in (q, k, v))",
        "q, k, v = (x.unflatten(1, (-1, window)) for x in (q, k.roll(1, 0), v.roll(1, 0)))")
