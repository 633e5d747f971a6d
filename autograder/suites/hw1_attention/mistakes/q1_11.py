# %% scores-lose-the-permutation
"""In one step you cancel P between queries and keys: (P X Wq)(P X Wk)^T becomes P S P^T, and there is no P^T
P in it to cancel. Both the rows and the columns of the scores are permuted."""
replace("softargmax(P @ (Q @ K.T / root) @ P.T)", "softargmax(Q @ K.T / root)")

# %% keys-not-permuted-back
"""In one line the queries are permuted but the keys are not: the scores of P X are P S P^T, and the P^T on
the right is what meets the P of the values."""
replace("softargmax(P @ (Q @ K.T / root) @ P.T)", "softargmax(P @ (Q @ K.T / root))")

# %% ends-with-inverse-permutation
"""Your last line applies the inverse permutation, P^T: the output of self-attention is permuted in the same
way as its input."""
replace("P @ (softargmax(Q @ K.T / root) @ V)", "P.T @ (softargmax(Q @ K.T / root) @ V)")

# %% ends-with-invariance
"""Your last line is Sa(X): that would be invariance. Self-attention is equivariant, the output's rows are
permuted too."""
replace("P @ (softargmax(Q @ K.T / root) @ V)", "softargmax(Q @ K.T / root) @ V")

# %% unscaled
"""All your lines agree, but they are about another layer: the scores are not divided by sqrt(D)."""
replace("root = math.sqrt(X.shape[-1])", "root = 1.0")

# %% scaled-by-length
"""You divide the scores by the root of N, the number of tokens: the scale is the root of D, the width the dot
product runs over."""
replace("root = math.sqrt(X.shape[-1])", "root = math.sqrt(len(X))")

# %% softmax-over-queries
"""Your weights sum to 1 over the queries. The lines still agree, because this layer is equivariant as well,
but Sa normalises over the keys."""
replace("(Y @ Wq) @ (Y @ Wk).T / root)", "(Y @ Wq) @ (Y @ Wk).T / root, dim=0)")
replace("P @ (Q @ K.T / root) @ P.T)", "P @ (Q @ K.T / root) @ P.T, dim=0)")
replace("P @ softargmax(Q @ K.T / root)", "P @ softargmax(Q @ K.T / root, dim=0)")
replace("P @ (softargmax(Q @ K.T / root)", "P @ (softargmax(Q @ K.T / root, dim=0)")

# %% weights-for-outputs
"""Some of your lines are attention matrices [N, N]: every line has to be the whole output [N, D], values
included."""
replace("@ P.T) @ (P @ V)", "@ P.T)")
replace("@ P.T @ (P @ V)", "@ P.T")

# %% too-few-lines
"""You state the theorem, its first and its last line. The proof is what stands between: at least three
lines."""
replace("softargmax(P @ (Q @ K.T / root) @ P.T) @ (P @ V),", "")
replace("P @ softargmax(Q @ K.T / root) @ P.T @ (P @ V),", "")

# %% inverse-permutation-throughout
"""All your lines agree, but they are about the inverse permutation: you write P^T where the theorem has P. Tokens are
rows, so the shuffled tokens are P X."""
replace("root = math.sqrt(X.shape[-1])", "root, P = math.sqrt(X.shape[-1]), P.T")

# %% queries-and-keys-swapped
"""All your lines agree, but queries and keys have changed places: the scores are X Wq (X Wk)^T, and the softmax runs
over the keys."""
replace("root = math.sqrt(X.shape[-1])", "root, Wq, Wk = math.sqrt(X.shape[-1]), Wk, Wq")
