# %% torch-var-mean
"""`torch.var_mean` with no correction, and `rsqrt`."""
def layer_norm(x, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(var + eps) * gamma + beta


# %% pairwise-differences
"""All differences of a row's entries: their mean is the centred entry, half their mean square the variance."""
def layer_norm(x, gamma, beta, eps=1e-5):
    apart = x[..., :, None] - x[..., None, :]  # [..., d, d]
    var = apart.pow(2).mean((-2, -1)) / 2
    return beta + gamma * (apart.mean(-1) * (var[..., None] + eps) ** -0.5)


# %% einsum-and-addcmul
"""Sums by einsum, the affine part by `addcmul`."""
def layer_norm(x, gamma, beta, eps=1e-5):
    d = x.size(-1)
    centred = x - torch.einsum("...d->...", x)[..., None] / d
    var = torch.einsum("...d,...d->...", centred, centred)[..., None] / d
    return torch.addcmul(beta, gamma, centred / (var + eps).sqrt())


# %% row-by-row
"""A loop over the vectors of the flattened input, put back into shape at the end."""
def layer_norm(x, gamma, beta, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        centre = row.sum() / len(row)
        spread = ((row - centre) ** 2).sum() / len(row)
        rows.append((row - centre) / (spread + eps).sqrt() * gamma + beta)
    return torch.stack(rows).reshape(x.shape)


# %% length-for-variance
"""The length of the centred row in place of its variance: both root and eps grow by a factor d."""
def layer_norm(x, gamma, beta, eps=1e-5):
    d = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    squared = torch.matmul(centred.unsqueeze(-2), centred.unsqueeze(-1)).squeeze(-1)  # [..., 1]
    return gamma * (math.sqrt(d) * centred / (squared + d * eps).sqrt()) + beta


# %% two-helpers
"""Small functions of one's own, last axis moved to the front and back."""
def centred_and_variance(x):
    x = x.movedim(-1, 0)
    centred = x - x.mean(0)
    return centred.movedim(0, -1), centred.pow(2).mean(0).unsqueeze(-1)


def layer_norm(x, gamma, beta, eps=1e-5):
    centred, variance = centred_and_variance(x)
    return centred.div(variance.add(eps).sqrt()).mul(gamma).add(beta)
