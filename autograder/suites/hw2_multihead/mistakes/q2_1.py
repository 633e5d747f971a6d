# %% view-without-transpose
"""The shape of your heads is right, but their rows mix tokens: a `view` straight to [B, H, N, Dh] cuts the
numbers in the order in which they lie in memory. Try it on `torch.arange` and look where token 1 went. Split
the last axis first, then move the new axis."""
replace("x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "x.reshape(len(x), n_heads, x.shape[1], -1)")

# %% merge-without-transpose
"""The shape of what you merge is right, but the tokens are scrambled: the head axis still stands before the
tokens when you reshape. Move it beside the width first."""
replace("x.transpose(1, 2).flatten(2)", "x.reshape(len(x), x.shape[2], -1)")

# %% both-without-transpose
"""Your two functions undo each other, and yet both are wrong: a `view` cuts the numbers in the order in which
they lie in memory, so your heads hold pieces of several tokens. The round trip alone proves nothing: look at
one head's columns."""
replace("x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "x.reshape(len(x), n_heads, x.shape[1], -1)")
replace("x.transpose(1, 2).flatten(2)", "x.reshape(len(x), x.shape[2], -1)")

# %% heads-interleaved
"""Your head 0 holds columns 0, H, 2H and so on: the last axis is split as (Dh, H). A head is a block of
neighbouring columns, so in the split the head axis comes first."""
replace("x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)")
replace("x.transpose(1, 2).flatten(2)", "x.permute(0, 2, 3, 1).flatten(2)")

# %% merge-interleaved
"""Your merged columns alternate between the heads: column 0 of each head, then column 1 of each. All columns of
head 0 come first, so the width must be the last axis when you flatten."""
replace("x.transpose(1, 2).flatten(2)", "x.permute(0, 2, 3, 1).flatten(2)")

# %% heads-left-after-tokens
"""Your split has shape [B, N, H, Dh]: the heads still stand behind the tokens. Attention runs over the last two
axes, and these must be tokens and width."""
replace("x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "x.unflatten(-1, (n_heads, -1))")

# %% number-and-width-swapped
"""You make heads of width `n_heads`, and as many of them as fit: `n_heads` is how many heads there are, and
their width follows from it."""
replace("x.unflatten(-1, (n_heads, -1))", "x.unflatten(-1, (-1, n_heads))")

# %% heads-before-batch
"""Your head axis stands in front of the batch: [H, B, N, Dh]. The batch stays first."""
replace("x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "torch.stack(x.chunk(n_heads, dim=-1), dim=0)")

# %% merged-along-tokens
"""Your merge lays the heads one after the other along the tokens, so the sequence grows H times as long. They
belong side by side, in the columns."""
replace("x.transpose(1, 2).flatten(2)", "torch.cat(x.unbind(1), dim=1)")

# %% heads-summed
"""Your merge adds the heads up, which leaves width Dh. Merging keeps every number: the heads go side by
side."""
replace("x.transpose(1, 2).flatten(2)", "x.sum(1)")

# %% merge-view-not-contiguous price=0.2
"""Your merge stops with "view size is not compatible": after a transpose the numbers no longer lie in memory in
the order of the axes, and `view` never copies. Which function does, when it has to?"""
replace("x.transpose(1, 2).flatten(2)", "x.transpose(1, 2).view(len(x), x.shape[2], -1)")

# %% strides-assumed price=0.15
"""You compute strides by hand, as if the input filled its memory without gaps. A slice or a transpose of another
tensor does not: index axes, and leave the strides to torch."""
replace("return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
        """B, N, D = x.shape
    return torch.as_strided(x, (B, n_heads, N, D // n_heads), (N * D, D // n_heads, D, 1))""")
replace("return x.transpose(1, 2).flatten(2)",
        """B, H, N, width = x.shape
    return torch.as_strided(x, (B, N, H, width), (H * N * width, width, N * width, 1)).reshape(B, N, H * width)""")

# %% batch-and-heads-swapped-in-merge
"""Your merge trades the batch for the heads: each token gets pieces of other examples. Swap heads and tokens, axes 1
and 2, and leave the batch where it is."""
replace("return x.transpose(1, 2).flatten(2)", "return x.permute(1, 2, 0, 3).reshape(x.shape[0], x.shape[2], -1)")

# %% gradient-cut price=0.3
"""No gradient passes: the numbers are copied out of the graph by `detach`, `.data` or NumPy. Reshaping and transposing
are enough."""
replace("return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "return x.detach().unflatten(-1, (n_heads, -1)).transpose(1, 2)")
