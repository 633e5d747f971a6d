# %% one-bias-per-projection price=0.25
"""You count three biases, one number for each projection. A linear layer has one bias per output, and each
projection has D outputs."""
replace("return 3 * D * D, 3 * D", "return 3 * D**2, 3")

# %% biases-forgotten price=0.25
"""Your projections have no biases. The second number counts them: one per output of each of the three."""
replace("return 3 * D * D, 3 * D", "return 3 * D**2, 0")

# %% one-projection-only price=0.25
"""You count one projection. Queries, keys and values have a matrix each."""
replace("return 3 * D * D, 3 * D", "return D**2, D")

# %% output-projection-counted price=0.25
"""You count four projections: `qkv_parameters` is about queries, keys and values alone; the output projection
comes in with `mha_parameters`."""
replace("return 3 * D * D, 3 * D", "return 4 * D**2, 4 * D")

# %% order-swapped price=0.25
"""You return the biases first. The order is (weights, biases)."""
replace("return 3 * D * D, 3 * D", "return 3 * D, 3 * D**2")

# %% weights-and-biases-added price=0.25
"""You return one number. `qkv_parameters` gives the pair (weights, biases)."""
replace("return 3 * D * D, 3 * D", "return 3 * D**2 + 3 * D")

# %% entries-of-one-query price=0.25
"""You count the weights of one query. Each of the N queries has a weight for each of the N keys."""
replace("return N * N", "return N")

# %% entries-by-pairs price=0.25
"""You count each pair of tokens once. Attention is not symmetric: token i's weight on j and j's on i are two
numbers, and each token has one on itself."""
replace("return N * N", "return N * (N - 1) // 2")

# %% entries-causal price=0.25
"""You count the lower triangle only. The question is about all entries of the matrix, no mask."""
replace("return N * N", "return N * (N + 1) // 2")

# %% dense-shared-over-tokens price=0.25
"""Your dense layer is applied to each token by itself: D squared weights. Here one layer takes all N tokens at
once: how many numbers go in, and how many come out?"""
replace("(N * D) ** 2, N * D", "D**2, D")

# %% dense-biases-n-squared price=0.25
"""Your weights are right. For the biases, count the outputs of the layer: N tokens with D numbers each."""
replace("(N * D) ** 2, N * D", "N**2 * D**2, N**2")

# %% dense-biases-per-channel price=0.25
"""Your weights are right, but you give all tokens the same biases. The dense layer has one bias for each of its
outputs."""
replace("(N * D) ** 2, N * D", "N**2 * D**2, D")

# %% dense-tokens-only price=0.25
"""You connect tokens with tokens and forget that each carries D numbers: every input number meets every output
number."""
replace("(N * D) ** 2, N * D", "N**2, N")

# %% mha-times-heads price=0.25
"""You multiply by the number of heads, as if each head had width D. Heads share the width: H times D / H is D
again."""
replace("4 * D * D + (4 * D if bias else 0)", "4 * H * D**2 + (4 * D if bias else 0)")

# %% mha-divided-by-heads price=0.25
"""Your heads see only their own slice of the input, so the count shrinks with H. Each head reads all D numbers:
its matrices are D times D / H, and there are H of them."""
replace("4 * D * D + (4 * D if bias else 0)", "3 * D**2 // H + D**2 + (4 * D if bias else 0)")

# %% mha-output-projection-forgotten price=0.25
"""You count three projections. Multi-head attention has a fourth, which mixes the heads at the end."""
replace("4 * D * D + (4 * D if bias else 0)", "3 * D**2 + (3 * D if bias else 0)")

# %% mha-biases-forgotten price=0.25
"""You count weights only. With `bias=True` each of the four projections has D biases."""
replace("4 * D * D + (4 * D if bias else 0)", "4 * D**2")

# %% mha-bias-argument-ignored price=0.25
"""You count the biases even when `bias=False`."""
replace("4 * D * D + (4 * D if bias else 0)", "4 * D**2 + 4 * D")

# %% mha-biases-per-head price=0.25
"""Your biases are those of heads of width D. A head has D / H outputs, so all heads together have D biases per
projection."""
replace("4 * D * D + (4 * D if bias else 0)", "4 * D**2 + ((3 * H + 1) * D if bias else 0)")

# %% mha-heads-cut-the-input price=0.25
"""You count H matrices of D / H by D / H for each projection. A head's projection reads all D numbers: it is D by
D / H."""
replace("4 * D * D + (4 * D if bias else 0)", "4 * H * (D // H) ** 2 + (4 * D if bias else 0)")

# %% mha-output-bias-forgotten price=0.25
"""You count three biases of D numbers. The output projection has one as well."""
replace("4 * D * D + (4 * D if bias else 0)", "4 * D**2 + (3 * D if bias else 0)")

# %% dense-a-map-for-each-token price=0.25
"""You give each token a D by D map of its own, N D^2 weights. A fully connected layer joins every one of the N D inputs to
every one of the N D outputs."""
replace("(N * D) ** 2", "N * D * D")
