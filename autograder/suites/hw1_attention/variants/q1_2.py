# %% identity-minus-weights
"""y_i (delta_ij - y_j) by broadcasting, norm as a root of squares."""
def softmax_jacobian(z):
    y = (z - torch.logsumexp(z, 0)).exp()
    return y[:, None] * (torch.eye(len(z), dtype=z.dtype, device=z.device) - y)


def saturation(z):
    return float(softmax_jacobian(z).square().sum().sqrt())


# %% python-loops
"""Two loops over Python floats; the diagonal as y_i times the sum of the other weights."""
def softmax_jacobian(z):
    top = max(z.tolist())
    e = [math.exp(s - top) for s in z.tolist()]
    y = [a / sum(e) for a in e]
    n = len(y)
    rows = [[y[i] * sum(y[m] for m in range(n) if m != i) if i == j else -y[i] * y[j] for j in range(n)]
            for i in range(n)]
    return torch.tensor(rows, dtype=z.dtype, device=z.device)


def saturation(z):
    return math.sqrt(sum(entry**2 for row in softmax_jacobian(z).tolist() for entry in row))


# %% numpy
"""The same closed form in numpy; the norm from the weights, without the matrix."""
def softmax_jacobian(z):
    s = z.detach().cpu().numpy()
    e = np.exp(s - s.max())
    y = e / e.sum()
    return torch.from_numpy(np.diag(y) - np.outer(y, y)).to(z)


def saturation(z):
    s = z.detach().cpu().numpy()
    e = np.exp(s - s.max())
    y = e / e.sum()
    others = np.where(np.eye(len(y), dtype=bool), 0.0, np.outer(y, y)).sum(1)
    off = np.where(np.eye(len(y), dtype=bool), 0.0, np.outer(y, y) ** 2).sum()
    return float(np.sqrt((others**2).sum() + off))


# %% centred-features
"""The covariance of a one-hot draw: J = E (e - y)(e - y)^T, written as a weighted sum; a 0-dim tensor as
norm."""
def softmax_jacobian(z):
    y = F.softmax(z, dim=0)
    centred = torch.eye(len(z), dtype=z.dtype, device=z.device) - y  # row m: e_m - y
    return torch.einsum("m,mi,mj->ij", y, centred, centred)


def saturation(z):
    return torch.linalg.matrix_norm(softmax_jacobian(z))


# %% off-diagonal-then-rows-to-zero
"""Fill the off-diagonal part and set the diagonal so that every row sums to zero."""
def softmax_jacobian(z):
    y = softargmax(z)
    J = -y[:, None] * y[None, :]
    J = J - torch.diag(J.diagonal())
    return J - torch.diag(J.sum(1))


def saturation(z):
    return math.hypot(*softmax_jacobian(z).flatten().tolist())
