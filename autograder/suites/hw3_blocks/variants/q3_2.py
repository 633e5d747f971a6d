# %% three-paths
"""The textbook way: derivative by the normalised entries, then through the variance, then through the mean."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    std = torch.sqrt(var + eps)
    dxhat = dy * gamma
    dvar = (dxhat * (x - mean) * -0.5 * (var + eps) ** -1.5).sum(-1, keepdim=True)
    dmean = (-dxhat / std).sum(-1, keepdim=True) + dvar * (-2 * (x - mean)).sum(-1, keepdim=True) / d
    dx = dxhat / std + dvar * 2 * (x - mean) / d + dmean / d
    xhat = (x - mean) / std
    return dx, (dy * xhat).reshape(-1, d).sum(0), dy.reshape(-1, d).sum(0)


# %% jacobian-of-each-row
"""The d x d Jacobian of every row, written out and multiplied in by einsum."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    X, G = x.reshape(-1, d), dy.reshape(-1, d)  # [R, d]
    centred = X - X.mean(1, keepdim=True)
    std = (centred.square().mean(1) + eps).sqrt()  # [R]
    xhat = centred / std[:, None]
    eye = torch.eye(d, dtype=x.dtype, device=x.device)
    J = (eye - 1 / d - torch.einsum("ri,rj->rij", xhat, xhat) / d) * gamma[:, None] / std[:, None, None]
    dx = torch.einsum("ri,rij->rj", G, J)
    return dx.reshape(x.shape), torch.einsum("ri,ri->i", G, xhat), torch.einsum("ri->i", G)


# %% row-by-row-list
"""A loop over rows; the two sums grow as it goes; returns a list."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    dgamma, dbeta, rows = torch.zeros_like(gamma), torch.zeros_like(gamma), []
    for g, row in zip(dy.reshape(-1, d), x.reshape(-1, d), strict=True):
        c = row - row.mean()
        std = torch.sqrt((c @ c) / d + eps)
        n = c / std
        dgamma = dgamma + g * n
        dbeta = dbeta + g
        up = g * gamma
        rows.append((d * up - up.sum() - n * (up @ n)) / (d * std))
    return [torch.stack(rows).reshape(x.shape), dgamma, dbeta]


# %% numpy
"""NumPy in float64 for everything, back to x's dtype at the end."""
import numpy as np


def layer_norm_backward(dy, x, gamma, eps=1e-5):
    g, a, w = (t.detach().cpu().double().numpy() for t in (dy, x, gamma))
    c = a - a.mean(-1, keepdims=True)
    std = np.sqrt((c**2).mean(-1, keepdims=True) + eps)
    n = c / std
    up = g * w
    dx = (up - up.mean(-1, keepdims=True) - n * (up * n).mean(-1, keepdims=True)) / std
    axes = tuple(range(a.ndim - 1))
    results = (dx, (g * n).sum(axis=axes), g.sum(axis=axes))
    return tuple(torch.as_tensor(r).to(device=x.device, dtype=x.dtype) for r in results)


# %% two-projections
"""dx as gamma * dy with its parts along the ones and along the centred row removed (the second one shrunk by
eps)."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    axes = list(range(x.dim() - 1))
    d = x.size(-1)
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    c = x - mean
    g = gamma * dy
    g0 = g - g.mean(-1, keepdim=True)
    along = (g0 * c).sum(-1, keepdim=True) / (d * (var + eps)) * c
    dx = (g0 - along) / (var + eps).sqrt()
    dbeta = dy.sum(axes) if axes else dy.clone()
    dgamma = dy * c / (var + eps).sqrt()
    return dx, dgamma.sum(axes) if axes else dgamma, dbeta


# %% flattened-rows
"""Forward statistics and derivatives by hand, sums over a flattened view, a dictionary unpacked at the end."""
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    rows = {"dy": dy.flatten(0, -2), "x": x.flatten(0, -2)} if x.dim() > 1 else {"dy": dy[None], "x": x[None]}
    mu = rows["x"].mean(1, keepdim=True)
    inverse = (rows["x"].sub(mu).pow(2).mean(1, keepdim=True) + eps).pow(-0.5)
    xhat = (rows["x"] - mu) * inverse
    dxhat = rows["dy"] * gamma
    dx = inverse * (dxhat - dxhat.mean(1, keepdim=True))
    dx = dx - inverse * xhat * (dxhat * xhat).mean(1, keepdim=True)
    return dx.view_as(x), (rows["dy"] * xhat).sum(0), rows["dy"].sum(0)
