# %% layer-norm-transposed
"""Layer norm of the transpose, with the affine part outside."""
def batch_norm(x, gamma, beta, eps=1e-5):
    columns = x.T  # [D, B]
    mean = columns.mean(-1, keepdim=True)
    var = columns.var(-1, keepdim=True, correction=0)
    return ((columns - mean) / (var + eps).sqrt()).T * gamma + beta


def depends_on(kind):
    return {"same", "same row" if kind == "layer" else "same column"}


# %% own-layer-norm
"""q3_1's layer norm on the transpose with ones and zeros; sets by if."""
def batch_norm(x, gamma, beta, eps=1e-5):
    B = x.shape[0]
    plain = layer_norm(x.mT, x.new_ones(B), x.new_zeros(B), eps).mT
    return gamma * plain + beta


def depends_on(kind):
    if kind == "layer":
        return {"same row", "same"}
    if kind == "batch":
        return {"same column", "same"}
    raise ValueError(f"no norm is called {kind}")


# %% column-by-column
"""A loop over columns; the sets are read off a Jacobian."""
def batch_norm(x, gamma, beta, eps=1e-5):
    columns = []
    for j in range(x.shape[1]):
        c = x[:, j] - x[:, j].sum() / len(x)
        columns.append(c / torch.sqrt((c @ c) / len(x) + eps) * gamma[j] + beta[j])
    return torch.stack(columns, dim=1)


def depends_on(kind):
    x = torch.tensor([[0.3, -1.2, 2.0, 0.7], [1.5, 0.1, -0.4, 2.2], [-0.8, 0.9, 1.1, -1.7]], dtype=torch.float64)
    axis = 1 if kind == "layer" else 0

    def norm(z):
        return (z - z.mean(axis, keepdim=True)) / (z.var(axis, keepdim=True, unbiased=False) + 1e-5).sqrt()

    felt = torch.autograd.functional.jacobian(norm, x)[0, 0].abs() > 1e-8  # [3, 4]: what output (0, 0) feels
    places = {
        "same": felt[0, 0],
        "same row": felt[0, 1:].any(),
        "same column": felt[1:, 0].any(),
        "elsewhere": felt[1:, 1:].any(),
    }
    return {name for name, depends in places.items() if depends}


# %% functional-batch-norm
"""`F.batch_norm` in training mode; sets built with `set` and `add`."""
def batch_norm(x, gamma, beta, eps=1e-5):
    if len(x) == 1:  # PyTorch refuses a batch of one; its variance is zero
        return 0 * x * gamma + beta
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)


def depends_on(kind):
    felt = set()
    felt.add("same")
    felt.add({"layer": "same row", "batch": "same column"}[kind])
    return felt


# %% einsum
"""Averages as products with a vector of 1 / B; set operations on the four places."""
def batch_norm(x, gamma, beta, eps=1e-5):
    share = torch.full_like(x[:, 0], 1 / x.shape[0])  # [B]
    centred = x - torch.einsum("b,bd->d", share, x)
    var = torch.einsum("b,bd,bd->d", share, centred, centred)
    return centred * torch.rsqrt(var + eps) * gamma + beta


def depends_on(kind):
    everywhere = {"same", "same row", "same column", "elsewhere"}
    return everywhere - {"elsewhere"} - ({"same column"} if kind == "layer" else {"same row"})
