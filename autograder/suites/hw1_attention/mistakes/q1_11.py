# %% scores-lose-the-permutation
"""In one step you cancel P between queries and keys: (P X Wq)(P X Wk)^T becomes P S P^T, and there is no P^T
P in it to cancel. Both the rows and the columns of the scores are permuted."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), -1) @ PX @ Wv,
        torch.softmax(S, -1) @ P @ X @ Wv,
        P @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% keys-not-permuted-back
"""In one line the queries are permuted but the keys are not: the scores of P X are P S P^T, and the P^T on
the right is what meets the P of the values."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), -1) @ PX @ Wv,
        torch.softmax(P @ S, -1) @ P @ X @ Wv,
        P @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% ends-with-inverse-permutation
"""Your last line applies the inverse permutation, P^T: the output of self-attention is permuted in the same
way as its input."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), -1) @ PX @ Wv,
        torch.softmax(P @ S @ P.T, -1) @ P @ X @ Wv,
        P.T @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% ends-with-invariance
"""Your last line is Sa(X): that would be invariance. Self-attention is equivariant, the output's rows are
permuted too."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), -1) @ PX @ Wv,
        torch.softmax(P @ S @ P.T, -1) @ P @ X @ Wv,
        torch.softmax(S, -1) @ X @ Wv,
    ]


# %% unscaled
"""All your lines agree, but they are about another layer: the scores are not divided by sqrt(D)."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T, -1) @ PX @ Wv,
        torch.softmax(P @ S @ P.T, -1) @ P @ X @ Wv,
        P @ torch.softmax(S, -1) @ P.T @ P @ X @ Wv,
        P @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% scaled-by-length
"""You divide the scores by the root of N, the number of tokens: the scale is the root of D, the width the dot
product runs over."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[0])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[0]), -1) @ PX @ Wv,
        torch.softmax(P @ S @ P.T, -1) @ P @ X @ Wv,
        P @ torch.softmax(S, -1) @ P.T @ P @ X @ Wv,
        P @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% softmax-over-queries
"""Your weights sum to 1 over the queries. The lines still agree, because this layer is equivariant as well,
but Sa normalises over the keys."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), 0) @ PX @ Wv,
        torch.softmax(P @ S @ P.T, 0) @ P @ X @ Wv,
        P @ torch.softmax(S, 0) @ P.T @ P @ X @ Wv,
        P @ torch.softmax(S, 0) @ X @ Wv,
    ]


# %% weights-for-outputs
"""Some of your lines are attention matrices [N, N]: every line has to be the whole output [N, D], values
included."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), -1) @ PX @ Wv,
        torch.softmax(P @ S @ P.T, -1),
        P @ torch.softmax(S, -1) @ P.T,
        P @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% too-few-lines
"""You state the theorem, its first and its last line. The proof is what stands between: at least three
lines."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    S = X @ Wq @ (X @ Wk).T / math.sqrt(X.shape[1])
    PX = P @ X
    return [
        torch.softmax(PX @ Wq @ (PX @ Wk).T / math.sqrt(X.shape[1]), -1) @ PX @ Wv,
        P @ torch.softmax(S, -1) @ X @ Wv,
    ]


# %% inverse-permutation-throughout
"""All your lines agree, but they are about the inverse permutation: you write P^T where the theorem has P. Tokens are
rows, so the shuffled tokens are P X."""


def equivariance_lines(X, P, Wq, Wk, Wv):
    root, R = math.sqrt(X.shape[-1]), P.T
    S, V, Y = X @ Wq @ (X @ Wk).T / root, X @ Wv, P.T @ X
    return [
        torch.softmax((Y @ Wq) @ (Y @ Wk).T / root, -1) @ (Y @ Wv),
        R @ torch.softmax(S, -1) @ R.T @ (R @ V),
        R @ torch.softmax(S, -1) @ V,
    ]


# %% queries-and-keys-swapped
"""All your lines agree, but queries and keys have changed places: the scores are X Wq (X Wk)^T, and the softmax runs
over the keys."""


def equivariance_lines(X, P, Wq, Wk, Wv):
    root = math.sqrt(X.shape[-1])
    S, V, Y = X @ Wk @ (X @ Wq).T / root, X @ Wv, P @ X
    return [
        torch.softmax((Y @ Wk) @ (Y @ Wq).T / root, -1) @ (Y @ Wv),
        P @ torch.softmax(S, -1) @ P.T @ (P @ V),
        P @ torch.softmax(S, -1) @ V,
    ]
