# %% multiply-adds-not-doubled price=0.25
"""You are a factor of 2 below the counter: it counts a multiplication and an addition as two operations."""
replace("return projections + products", "return (projections + products) // 2")

# %% projections-forgotten
"""You count the two products with the attention matrix. The four projections are part of the forward pass
too."""
replace("return projections + products", "return products")

# %% output-projection-forgotten price=0.25
"""You count three projections. The merged heads pass through a fourth, with T rows."""
replace("(T + S + S + T) * D * D", "(T + S + S) * D * D")

# %% key-length-forgotten price=0.25
"""You project T keys and values. There are S of them: only queries and outputs have T rows."""
replace("(T + S + S + T) * D * D", "(T + T + T + T) * D * D")

# %% value-product-forgotten
"""You count the product of queries and keys. The weights then meet the values, and that costs as much again."""
replace("2 * 2 * H * T * S * d_head", "2 * H * T * S * d_head")

# %% one-head-only
"""Your two attention products count one head. Each of the H heads has its own T by S matrix."""
replace("2 * 2 * H * T * S * d_head", "2 * 2 * T * S * d_head")

# %% heads-of-full-width
"""You let every head be as wide as the model. Its vectors have d_head numbers: over all heads that makes d_head
* H."""
replace("2 * 2 * H * T * S * d_head", "2 * 2 * H * T * S * D")

# %% projections-inside-heads
"""Your projections map d_head to d_head within each head. Each head reads the whole input: its matrices are
d_head * H by d_head."""
replace("(T + S + S + T) * D * D", "(T + S + S + T) * H * d_head**2")

# %% softmax-counted price=0.25
"""You count the softmax as well. torch.utils.flop_counter counts matrix products only: exponentials and
divisions do not appear."""
replace("return projections + products", "return projections + products + 3 * H * T * S")

# %% biases-counted price=0.25
"""You add an operation for each bias. The counter counts matrix products; adding a bias is none."""
replace("return projections + products", "return projections + products + 2 * (T + S) * D")

# %% crossover-at-d-model price=0.25
"""Your bottleneck changes hands at T = S = d_model. Put your own two counts side by side and solve for the
length: how many projections are there, and how many products?"""
replace("products > projections", "2 * products > projections")

# %% crossover-without-output-projection price=0.25
"""Your bottleneck changes hands at 1.5 d_model: that is the crossover for three projections. There are four."""
replace("(T + S + S + T) * d_model**2", "(T + S + S) * d_model**2")

# %% always-attention price=0.25
"""You always blame the quadratic part. For short sequences of wide vectors the projections cost more: try
length 8 and width 256."""
replace('"attention" if products > projections else "projections"', '"attention"')

# %% answers-swapped price=0.25
"""Your two answers are the wrong way round: long sequences make attention dear, wide models the projections."""
replace('"attention" if products > projections else "projections"',
        '"projections" if products > projections else "attention"')

# %% query-length-only price=0.25
"""Your bottleneck looks at T alone. One query against many keys: what do the projections of those keys cost,
and what the products?"""
replace("products > projections", "T > 2 * d_model")

# %% compares-squares price=0.25
"""You compare T * S with d_model squared. Each side has more factors than that: write out both counts before
you cancel."""
replace("products > projections", "T * S > d_model**2")

# %% longer-side-only price=0.25
"""You take the longer of the two lengths and compare it with twice the width. With T = 1 and a long memory the
products have T * S entries only, yet all S keys are projected."""
replace("products > projections", "max(T, S) > 2 * d_model")

# %% output-rows-from-keys price=0.25
"""Your output projection has S rows. There is one output for each query, so it has T."""
replace("(T + S + S + T) * D * D", "(T + S + S + S) * D * D")

# %% value-rows-from-queries price=0.25
"""One of your projections of keys and values has T rows. Both have S: there are as many values as keys."""
replace("(T + S + S + T) * D * D", "(T + S + T + T) * D * D")

# %% crossover-by-the-keys-alone price=0.25
"""You compare the number of keys with the width. Both lengths count: with one query and many keys the projections of the
keys and values cost far more than the products."""
replace('return "attention" if products > projections', 'return "attention" if S > d_model')
