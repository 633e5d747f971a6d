# %% small-functions
"""A function for the layer and one for the softmax."""
def _sa(Y, Wq, Wk, Wv):
    return F.softmax((Y @ Wq) @ (Y @ Wk).T / Y.shape[-1] ** 0.5, dim=1) @ (Y @ Wv)


def line_shuffled(X, P, Wq, Wk, Wv):
    return _sa(P @ X, Wq, Wk, Wv)


def line_scores(S, V, P):
    return F.softmax(P @ S @ P.T, dim=1) @ P @ V


def line_weights(A, V, P):
    return torch.linalg.multi_dot([P, A, P.T, P, V])


def line_output(A, V, P):
    return P @ A @ V


# %% index-form
"""Sums over named indices."""
def line_shuffled(X, P, Wq, Wk, Wv):
    Y = torch.einsum("ij,jd->id", P, X)
    S = torch.einsum("id,de,jf,fe->ij", Y, Wq, Y, Wk) * X.shape[1] ** -0.5
    return torch.einsum("ij,jd,de->ie", S.softmax(-1), Y, Wv)


def line_scores(S, V, P):
    return torch.einsum("ij,jk,kd->id", torch.einsum("ia,ab,jb->ij", P, S, P).softmax(-1), P, V)


def line_weights(A, V, P):
    return torch.einsum("ia,ab,jb,jc,cd->id", P, A, P, P, V)


def line_output(A, V, P):
    return torch.einsum("ia,ab,bd->id", P, A, V)


# %% fused-attention
"""The layer by F.scaled_dot_product_attention, which this question allows; the rest by numpy."""
def line_shuffled(X, P, Wq, Wk, Wv):
    Y = P @ X
    return F.scaled_dot_product_attention((Y @ Wq)[None], (Y @ Wk)[None], (Y @ Wv)[None])[0]


def line_scores(S, V, P):
    s, v, p = S.numpy(), V.numpy(), P.numpy()
    z = p @ s @ p.T
    e = np.exp(z - z.max(1, keepdims=True))
    return torch.from_numpy(e / e.sum(1, keepdims=True) @ (p @ v))


def line_weights(A, V, P):
    return torch.from_numpy(P.numpy() @ A.numpy() @ P.numpy().T @ (P.numpy() @ V.numpy()))


def line_output(A, V, P):
    return torch.from_numpy(P.numpy() @ (A.numpy() @ V.numpy()))


# %% row-by-row
"""Each output row as a ratio of sums of exponentials."""
def _row(scores, values):
    e = torch.exp(scores - scores.max())
    return sum(e[j] * values[j] for j in range(len(values))) / e.sum()


def line_shuffled(X, P, Wq, Wk, Wv):
    Y = P @ X
    root = math.sqrt(X.size(1))
    return torch.stack([_row(torch.stack([(y @ Wq) @ (z @ Wk) / root for z in Y]), Y @ Wv) for y in Y])


def line_scores(S, V, P):
    Z = P @ S @ P.T
    return torch.stack([_row(z, P @ V) for z in Z])


def line_weights(A, V, P):
    return torch.stack([(row @ A @ P.T) @ (P @ V) for row in P])


def line_output(A, V, P):
    return torch.stack([row @ A @ V for row in P])


# %% own-attention-and-logsumexp
"""q1_7's attention for the first line, logsumexp in the second, a line that calls the next with its letters changed."""
def line_shuffled(X, P, Wq, Wk, Wv):
    Y = P.matmul(X)
    return attention((Y @ Wq)[None], (Y @ Wk)[None], (Y @ Wv)[None])[0][0]


def line_scores(S, V, P):
    Z = P @ S @ P.mT
    return torch.exp(Z - Z.logsumexp(1, keepdim=True)) @ (P @ V)


def line_output(A, V, P):
    return P.matmul(A).matmul(V)


def line_weights(A, V, P):
    return line_output(A, P.mT @ P @ V, P)
