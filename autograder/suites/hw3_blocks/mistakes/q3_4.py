# %% no-absolute-value
"""For a negative gamma your radius is negative, and no norm is: what happens to a factor when you take it out
of a norm?"""
def layer_norm_radius(gamma, d):
    return gamma * math.sqrt(d)


# %% root-of-d-minus-one
"""Your radius is that of the unbiased variance. With the biased one the squares of the normalised entries sum
to d."""
def layer_norm_radius(gamma, d):
    return abs(gamma) * math.sqrt(d - 1)


# %% root-forgotten
"""Your radius grows like d. The squares sum to d; the norm is the root of that sum."""
def layer_norm_radius(gamma, d):
    return abs(gamma) * d


# %% squared-radius
"""What you return is the square of the norm."""
def layer_norm_radius(gamma, d):
    return gamma**2 * d


# %% gamma-forgotten
"""Your radius does not depend on gamma: root d is the norm before gamma stretches the vector."""
def layer_norm_radius(gamma, d):
    return math.sqrt(d)


# %% unit-sphere
"""Your radius does not depend on d: a normalised vector has *variance* one, not length one. How long is a
vector of d entries whose mean square is 1?"""
def layer_norm_radius(gamma, d):
    return abs(gamma)


# %% lines-lose-the-sign
"""In one of your lines gamma leaves the norm without its absolute value. With gamma > 0 nobody would notice;
with gamma < 0 that line is negative."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = centred.square().mean().sqrt()
    y = gamma * centred / std + beta
    return [
        torch.linalg.vector_norm(y - beta),
        gamma * torch.linalg.vector_norm(centred) / std,
        abs(gamma) * math.sqrt(len(x)),
    ]


# %% lines-about-y
"""Your first line is the norm of y itself. The claim is about y - beta: the sphere's centre is not the
origin."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = centred.square().mean().sqrt()
    y = gamma * centred / std + beta
    return [
        torch.linalg.vector_norm(y),
        abs(gamma) * torch.linalg.vector_norm(centred) / std,
        abs(gamma) * math.sqrt(len(x)),
    ]


# %% lines-with-the-raw-norm
"""One of your lines has the norm of x over the deviation. The mean was taken away first; the norm of x is
that of the centred vector only when the mean is zero."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = centred.square().mean().sqrt()
    y = gamma * centred / std + beta
    return [
        torch.linalg.vector_norm(y - beta),
        abs(gamma) * torch.linalg.vector_norm(x) / std,
        abs(gamma) * math.sqrt(len(x)),
    ]


# %% lines-sum-of-roots
"""In one line you take the root of each square and add those up. The root of a sum is not the sum of the
roots."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = centred.square().mean().sqrt()
    y = gamma * centred / std + beta
    return [
        torch.linalg.vector_norm(y - beta),
        (gamma * centred / std).square().sqrt().sum(),
        abs(gamma) * math.sqrt(len(x)),
    ]


# %% lines-with-unbiased-variance
"""Your lines agree with one another, but they are about another norm: `x.std()` divides by d - 1, and all your
lines are the same bit too small."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = x.std()
    y = gamma * centred / std + beta
    return [
        torch.linalg.vector_norm(y - beta),
        abs(gamma) * torch.linalg.vector_norm(centred) / std,
        abs(gamma) * math.sqrt(len(x) - 1),
    ]


# %% lines-with-eps
"""Your first lines are a little shorter than the last, most of all when x hardly varies: there is an eps in
your layer norm, and the claim is about eps = 0."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = (centred.square().mean() + 1e-5).sqrt()
    y = gamma * centred / std + beta
    return [
        torch.linalg.vector_norm(y - beta),
        abs(gamma) * torch.linalg.vector_norm(centred) / std,
        abs(gamma) * math.sqrt(len(x)),
    ]


# %% lines-squared
"""Your lines agree with one another, but each is the square of the norm. Take the root in every line."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    var = centred.square().mean()
    y = gamma * centred / var.sqrt() + beta
    return [(y - beta).square().sum(), gamma**2 * centred.square().sum() / var, gamma**2 * len(x)]


# %% lines-are-vectors
"""Some of your lines are vectors: every line is the norm, one number."""
def radius_lines(x, gamma, beta):
    centred = x - x.mean()
    std = centred.square().mean().sqrt()
    y = gamma * centred / std + beta
    return [y - beta, gamma * centred / std, torch.linalg.vector_norm(y - beta), abs(gamma) * math.sqrt(len(x))]


# %% conclusion-only
"""Your list has fewer than three lines. A proof begins with what the claim is about, the norm of y - beta, ends with
the radius, and says what happens in between."""
def radius_lines(x, gamma, beta):
    return [abs(gamma) * math.sqrt(len(x))]


# %% conclusion-repeated
"""Your lines never look at x: each is the conclusion again. A proof begins with what the claim is about, the norm of
y - beta with y computed from x."""
def radius_lines(x, gamma, beta):
    return [layer_norm_radius(gamma, len(x))] * 3
