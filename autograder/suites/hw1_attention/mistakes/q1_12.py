# %% identity-too-soft
"""Your identity blurs: a score of 1 against 0 leaves much weight on the other positions. The scores must be
so far apart that softmax is all but an argmax."""
replace("return permutation_layer(list(range(n)), d)", """layer = permutation_layer(list(range(n)), d)
    return layer | {"Wq": layer["Wk"]}""")

# %% identity-forgets-the-scale price=0.2
"""Your identity is sharp for small n only: the layer divides the scores by sqrt(A), so the gap between right
and wrong positions shrinks as A grows."""
replace("return permutation_layer(list(range(n)), d)", """layer = permutation_layer(list(range(n)), d)
    return layer | {"Wq": 20 * layer["Wk"]}""")

# %% identity-by-content
"""Your scores compare contents: a token then attends to whichever token has the largest dot product with it,
which need not be itself. Use the one-hot positions, which are the same for every X."""
replace("return permutation_layer(list(range(n)), d)", """layer = permutation_layer(list(range(n)), d)
    look = 30 * d**0.25 * layer["Wv"]
    return layer | {"Wq": look, "Wk": look}""")

# %% identity-returns-positions-too price=0.2
"""Your output has width d + n: the values carry the one-hot positions along. Only the content may leave the
layer."""
replace("return permutation_layer(list(range(n)), d)",
        'return permutation_layer(list(range(n)), d) | {"Wv": torch.eye(d + n)[None], "Wo": torch.eye(d + n)}')

# %% permutation-inverted price=0.3
"""Your layer applies the inverse permutation: output i must be input perm[i], and you send input i to output
perm[i]."""
replace("torch.eye(n)[perm]", "torch.eye(n)[perm].T")

# %% pointwise-uniform-attention
"""All your output rows are equal: uniform attention averages the tokens before W acts. Each position has to
look at itself alone."""
replace('identity_layer(n, W.shape[1]) | {"Wo": W.T}',
        'identity_layer(n, W.shape[1]) | {"Wo": W.T, "Wq": torch.zeros(1, W.shape[1] + n, n)}')

# %% convolution-mirrored price=0.25
"""Your kernel is mirrored: tap t looks at i - (t - K // 2). nn.Conv1d does not flip its kernel."""
replace("i + t - K // 2", "i - t + K // 2")

# %% convolution-not-centred price=0.25
"""Your window starts at position i; it should have i in its middle, so the first tap looks K // 2 positions
back."""
replace("(i + t - K // 2) % n", "(i + t) % n")

# %% convolution-borders-clamped price=0.2
"""The middle is right, the borders are not: a tap that leaves the sequence must come in again at the other
end, and yours stays at the edge."""
replace("(i + t - K // 2) % n", "min(max(i + t - K // 2, 0), n - 1)")

# %% convolution-one-head
"""One head cannot do it: its weights are non-negative and sum to 1, and all positions it looks at share one
Wv. Count how many different matrices the kernel has."""
def convolution_layer(kernel, n):
    d_out, d_in, K = kernel.shape
    Wq, Wv = kernel.new_zeros(1, d_in + n, n), kernel.new_zeros(1, d_in + n, d_out)
    Wk = Wq.clone()
    for i in range(n):
        for t in range(K):
            Wq[0, d_in + i, (i + t - K // 2) % n] = 1000 * math.sqrt(n)
        Wk[0, d_in + i, i] = 1.0
    Wv[0, :d_in] = kernel.sum(2).T
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": torch.eye(d_out, dtype=kernel.dtype, device=kernel.device)}

# %% convolution-heads-averaged price=0.25
"""Your output is K times too small: the heads are averaged, but a convolution adds up its taps."""
replace("kernel.permute(2, 1, 0).flatten(0, 1)", "kernel.permute(2, 1, 0).flatten(0, 1) / K")

# %% lead-without-the-root price=0.25
"""Your softmax is sharp for a few places and blurs for many: the layer divides the scores by sqrt(A), so a lead that is
fixed melts away as n grows. Multiply it by that root."""
replace("100 * math.sqrt(n)", "100")

# %% square-map-not-transposed price=0.2
"""You tell by its shape whether W must be transposed, and a square one fools you. W is [d_out, d_in] and output i is
W x_i: rows are multiplied by its transpose, always."""
replace('{"Wo": W.T}', '{"Wo": W if W.shape[0] == W.shape[1] else W.T}')

# %% wrapped-once price=0.1
"""You go round the corner once only: with a kernel more than twice as wide as there are places, some taps go round
several times. Take the place modulo n."""
replace("(i + t - K // 2) % n", "min(max(i + t - K // 2, -n), 2 * n - 1) % n")

# %% square-taps-not-transposed price=0.25
"""The taps of your convolution are not transposed: kernel[:, :, t] is [d_out, d_in] and multiplies a column. With
d_out = d_in nothing fails, and every tap is wrong."""
replace("kernel.permute(2, 1, 0).flatten(0, 1)",
        "(kernel.permute(2, 0, 1) if kernel.shape[0] == kernel.shape[1] else kernel.permute(2, 1, 0)).flatten(0, 1)")

# %% perm-of-the-output-features
"""Your permutation acts on the features as well as on the places: the values and the output map hand a token over as it
is."""
replace("return {\"Wq\": Wq[None], \"Wk\": Wk[None], \"Wv\": Wv[None], \"Wo\": torch.eye(d)}",
        "return {\"Wq\": Wq[None], \"Wk\": Wk[None], \"Wv\": Wv[None], \"Wo\": torch.eye(d).roll(1, 0)}")

# %% all-too-soft
"""All your layers blur: the lead of the chosen place is too small. After the division by the root of A a lead of 5
leaves every other place e^-5 of the weight; a lead of 100 leaves nothing that counts."""
replace("100 * math.sqrt(n)", "5 * math.sqrt(n)")

# %% wider-kernel-clamped price=0.15
"""Where the kernel is wider than the input your taps stop at the border. They go round, several times if need be: take
the place modulo n, whatever K is."""
replace("(i + t - K // 2) % n", "(i + t - K // 2) % n if K <= n else min(max(i + t - K // 2, 0), n - 1)")

# %% content-in-the-keys
"""Content reaches your scores: the first d rows of Wk are not zero, so a token with a large content is looked at from
everywhere. Leave the content rows of Wq and Wk at zero."""
replace("Wk = torch.cat([no_content, torch.eye(n)])", "Wk = torch.cat([no_content + 1, torch.eye(n)])")
