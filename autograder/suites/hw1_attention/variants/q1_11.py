# %% small-functions
"""A function for the layer and one for the softmax; five lines."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    D = X.shape[-1]

    def Sa(Y):
        return F.softmax((Y @ Wq) @ (Y @ Wk).T / D**0.5, dim=1) @ (Y @ Wv)

    Q, K, V = X @ Wq, X @ Wk, X @ Wv
    S = Q @ K.T / D**0.5
    return [
        Sa(P @ X),
        F.softmax((P @ Q) @ (P @ K).T / D**0.5, dim=1) @ (P @ V),
        F.softmax(P @ S @ P.T, dim=1) @ P @ V,
        (P @ F.softmax(S, dim=1) @ P.T) @ (P @ V),
        P @ Sa(X),
    ]


# %% index-form
"""P read as a list of indices: rows are picked, not multiplied."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    p = P.argmax(1)  # row i of P X is X[p[i]]
    S = torch.einsum("id,jd->ij", X @ Wq, X @ Wk) * X.shape[1] ** -0.5
    Y = X[p]
    first = softargmax(torch.einsum("id,jd->ij", Y @ Wq, Y @ Wk) * X.shape[1] ** -0.5) @ (Y @ Wv)
    second = softargmax(S[p][:, p]) @ (X @ Wv)[p]
    third = softargmax(S)[p][:, p] @ (X @ Wv)[p]
    fourth = softargmax(S)[p] @ (X @ Wv)
    return [first, second, third, fourth, (softargmax(S) @ (X @ Wv))[p]]


# %% fused-attention
"""The layer by F.scaled_dot_product_attention, which this question allows; three lines."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    def layer(q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]

    q, k, v = X @ Wq, X @ Wk, X @ Wv
    return [layer(P @ X @ Wq, P @ X @ Wk, P @ X @ Wv), layer(P @ q, P @ k, P @ v), P @ layer(q, k, v)]


# %% row-by-row
"""Each output row as a ratio of sums of exponentials; the sum is reordered in the middle line."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    N, D = X.shape
    root = math.sqrt(D)
    source = [int(row.nonzero()[0]) for row in P]

    def rows(Y, queries, keys):
        out = []
        for i in queries:
            z = torch.stack([(Y[i] @ Wq) @ (Y[j] @ Wk) / root for j in keys])
            e = torch.exp(z - z.max())
            out.append(sum(e[a] * (Y[j] @ Wv) for a, j in enumerate(keys)) / e.sum())
        return torch.stack(out)

    return [
        rows(P @ X, range(N), range(N)),
        rows(X, source, source),
        rows(X, source, range(N)),
        P @ rows(X, range(N), range(N)),
    ]


# %% own-attention-and-logsumexp
"""q1_7's attention for the first and last line, exponentials divided by row sums in between."""
def equivariance_lines(X, P, Wq, Wk, Wv):
    def Sa(Y):
        return attention((Y @ Wq)[None], (Y @ Wk)[None], (Y @ Wv)[None])[0][0]

    S = (X @ Wq @ Wk.T @ X.T) / math.sqrt(X.size(1))
    A = torch.exp(S - S.logsumexp(1, keepdim=True))
    PSP = P @ S @ P.mT
    return [
        Sa(P @ X),
        torch.exp(PSP - PSP.logsumexp(1, keepdim=True)) @ P @ X @ Wv,
        P @ A @ P.mT @ P @ X @ Wv,
        P @ A @ X @ Wv,
        P @ Sa(X),
    ]
