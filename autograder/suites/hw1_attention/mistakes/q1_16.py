# %% softmax-over-queries
"""Your softmax runs along the rows of K^T Q. A column belongs to a query, so the weights sum to 1 down each column."""
replace("dim=0", "dim=1")

# %% queries-and-keys-swapped
"""You take the softmax of Q^T K. Its columns belong to keys; the formula has K^T Q, whose columns belong to queries."""
replace("K.T @ Q", "Q.T @ K")

# %% scaled price=0.25
"""You divide the scores by the root of D. This formula has no scale."""
replace("K.T @ Q,", "K.T @ Q / math.sqrt(len(X)),")

# %% tokens-as-rows price=0.3
"""Your result is [N, D], with a row per token. Here tokens are columns, in and out."""
replace("V @ softargmax(K.T @ Q, dim=0)", "(V @ softargmax(K.T @ Q, dim=0)).T")

# %% bias-along-the-tokens
"""Your biases are added along the tokens, entry j to token j. A bias has one entry per feature, and every token gets the
same one: it is a column. (For N = D this gives no error.)"""
replace("b[:, None]", "b")

# %% biases-forgotten
"""Your projections have no biases."""
replace(" + b[:, None]", "")

# %% value-bias-forgotten price=0.25
"""The bias of the values is missing: every output should be moved by bv."""
replace("(Ov, bv)", "(Ov, 0 * bv)")

# %% query-bias-forgotten price=0.25
"""The bias of the queries is missing. It is the one of the keys that cancels in the softmax."""
replace("(Oq, bq)", "(Oq, 0 * bq)")

# %% matrices-transposed
"""Your matrices are transposed. With tokens as columns a matrix stands on the left, as it is: O X."""
replace("O @ X", "O.T @ X")

# %% weights-transposed price=0.3
"""You multiply V by the weights the wrong way round: column j of the result is V times column j of the weights."""
replace("V @ softargmax(K.T @ Q, dim=0)", "V @ softargmax(K.T @ Q, dim=0).T")

# %% values-not-projected
"""You average the tokens themselves. The values are Ov X + bv."""
replace("V @ softargmax", "X @ softargmax")

# %% no-softmax
"""There is no softmax in your result: the scores themselves are used as weights."""
replace("softargmax(K.T @ Q, dim=0)", "(K.T @ Q)")

# %% float32-inside price=0.2
"""Your result is float32, or was computed in it: results keep the input's dtype, float64 too."""
replace("(O @ X + b[:, None]", "((O @ X + b[:, None]).float()")

# %% value-bias-along-the-tokens price=0.3
"""The bias of your values is added along the tokens, entry j to token j: it fits for N = D only. Every token gets the
same bias, a column."""
replace("Q, K, V = (O @ X + b[:, None] for O, b in ((Oq, bq), (Ok, bk), (Ov, bv)))",
        "Q, K, V = Oq @ X + bq[:, None], Ok @ X + bk[:, None], Ov @ X + bv")

# %% value-matrix-transposed price=0.3
"""The matrix of your values is transposed. With tokens as columns a matrix stands on the left, as it is: O X."""
replace("(Ov, bv)", "(Ov.T, bv)")

# %% query-matrix-transposed price=0.3
"""The matrix of your queries or keys is transposed. With tokens as columns a matrix stands on the left, as it is: O X."""
replace("(Oq, bq)", "(Oq.T, bq)")
