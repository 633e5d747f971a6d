# %% matrices-transposed
"""You multiply by W where its transpose is meant: a head's matrix stands on the left of its slice, as in nn.Linear, and
tokens are rows here. A symmetric W would hide it."""
replace("slices @ W.mT", "slices @ W")

# %% matrix-transposed price=0.25
"""The blocks of your matrix are transposed: `x @ block_diagonal(W).T` already transposes once."""
replace("torch.block_diag(*W)", "torch.block_diag(*W.mT)")

# %% convolution-transposed price=0.25
"""Your convolution has the transposed matrices: a row of W is an output channel, as in nn.Linear."""
replace("W.reshape(H * Dh, Dh, 1)", "W.mT.reshape(H * Dh, Dh, 1)")

# %% heads-interleaved
"""Your heads take the columns h, h + H, h + 2H, ...: a slice is a block of neighbouring features, as in 2.1."""
replace("slices = split_heads(x, len(W))", "slices = x.unflatten(-1, (-1, len(W))).permute(0, 3, 1, 2)")
replace("merge_heads(slices @ W.mT)", "(slices @ W.mT).permute(0, 2, 3, 1).flatten(2)")

# %% sequence-cut
"""Your slices are pieces of the sequence and not of the features: a reshape to [B, H, N, Dh] cuts the wrong axis."""
replace("slices = split_heads(x, len(W))", "slices = x.reshape(len(x), len(W), x.shape[1], -1)")
replace("merge_heads(slices @ W.mT)", "(slices @ W.mT).reshape(x.shape)")

# %% one-matrix-for-all
"""All your heads use the matrix of head 0: each has its own."""
replace("slices @ W.mT", "slices @ W[0].mT")

# %% one-group price=0.2
"""Your convolution has one group, with the blocks written into a full weight: right numbers, and H times as many of them.
The question asks for `groups=H`."""
replace("groups=H, ", "")
replace("convolution.weight.copy_(W.reshape(H * Dh, Dh, 1))", "convolution.weight.copy_(torch.block_diag(*W)[..., None])")

# %% depthwise
"""Your convolution has as many groups as channels: every feature is scaled by itself. A group is a head."""
replace("groups=H, ", "groups=H * Dh, ")
replace("W.reshape(H * Dh, Dh, 1)", "W.diagonal(0, 1, 2).reshape(H * Dh, 1, 1)")

# %% bias-left-on price=0.2
"""Your convolution has a bias, which torch draws at random: say `bias=False`."""
replace("bias=False, ", "")

# %% weight-not-set price=0.6
"""Your convolution has the right form and torch's random weights: copy W into it."""
replace("        convolution.weight.copy_(W.reshape(H * Dh, Dh, 1))", "        pass")

# %% weight-shared price=0.15
"""The convolution's weight is W itself, in another shape: change one and the other changes too. Copy it."""
replace("convolution.weight.copy_(W.reshape(H * Dh, Dh, 1))", "convolution.weight.data = W.view(H * Dh, Dh, 1)")

# %% dtype-of-the-default price=0.15
"""Your convolution is float32 whatever W is: make it in W's dtype."""
replace("dtype=W.dtype, device=W.device", "device=W.device")

# %% weight-not-learned price=0.15
"""The convolution's weight is no parameter that learns: it is frozen, or a plain tensor."""
replace("    return convolution", "    return convolution.requires_grad_(False)")

# %% blocks-side-by-side
"""Your matrix is [D, Dh] or holds the blocks in the same columns: each block stands on the diagonal, with zeros beside it."""
replace("torch.block_diag(*W)", "W.reshape(-1, W.shape[-1])")

# %% blocks-everywhere
"""Your matrix has no zeros: a block is repeated beside the diagonal. A head does not hear another head's features."""
replace("torch.block_diag(*W)", "W.reshape(-1, W.shape[-1]).repeat(1, len(W))")

# %% linear-for-a-convolution price=0.25
"""You return an nn.Linear: it takes features last, and has no groups. The question asks for an nn.Conv1d."""
replace("    return convolution", """    linear = nn.Linear(H * Dh, H * Dh, bias=False, dtype=W.dtype)
    linear.weight.data = torch.block_diag(*W)
    return linear""")

# %% matrices-detached price=0.2
"""No gradient reaches W: it is detached on the way. These matrices are there to be learned."""
replace("slices @ W.mT", "slices @ W.detach().mT")

# %% no-gradient price=0.25
"""No gradient flows through your projection: the work is done outside of torch, or under no_grad."""
replace("    slices = split_heads(x, len(W))", "    x, W = x.detach(), W.detach()\n    slices = split_heads(x, len(W))")

# %% float32-inside price=0.15
"""Your projection has the right dtype and lost half of its digits: it is computed in float32."""
replace("merge_heads(slices @ W.mT)", "merge_heads(slices.float() @ W.mT.float()).to(x.dtype)")

# %% every-head-the-whole-input
"""Each of your heads sees the whole input, as in 2.2: sums over heads. Here a head is given its own slice alone."""
replace("merge_heads(slices @ W.mT)", "merge_heads((slices @ W.mT).sum(1, keepdim=True).expand_as(slices))")

# %% width-for-number
"""You split into as many heads as a head is wide: of W `[H, Dh, Dh]` the first axis is the number of heads."""
replace("split_heads(x, len(W))", "split_heads(x, W.shape[1])")
