# %% no-absolute-value
"""For a negative gamma your radius is negative, and no norm is: what happens to a factor when you take it out
of a norm?"""
replace("abs(gamma) * math.sqrt(d)", "gamma * math.sqrt(d)")

# %% root-of-d-minus-one
"""Your radius is that of the unbiased variance. With the biased one the squares of the normalised entries sum
to d."""
replace("abs(gamma) * math.sqrt(d)", "abs(gamma) * math.sqrt(d - 1)")

# %% root-forgotten
"""Your radius grows like d. The squares sum to d; the norm is the root of that sum."""
replace("abs(gamma) * math.sqrt(d)", "abs(gamma) * d")

# %% squared-radius
"""What you return is the square of the norm."""
replace("abs(gamma) * math.sqrt(d)", "gamma**2 * d")

# %% gamma-forgotten
"""Your radius does not depend on gamma: root d is the norm before gamma stretches the vector."""
replace("abs(gamma) * math.sqrt(d)", "math.sqrt(d)")

# %% unit-sphere
"""Your radius does not depend on d: a normalised vector has *variance* one, not length one. How long is a
vector of d entries whose mean square is 1?"""
replace("abs(gamma) * math.sqrt(d)", "abs(gamma)")

# %% lines-lose-the-sign
"""In one of your lines gamma leaves the norm without its absolute value. With gamma > 0 nobody would notice;
with gamma < 0 that line is negative."""
replace("abs(gamma) / sigma * distance", "gamma / sigma * distance")

# %% lines-about-y
"""Your first line is the norm of y itself. The claim is about y - beta: the sphere's centre is not the
origin."""
replace("(layer_norm(x, gamma, beta, eps=0.0) - beta).norm()", "layer_norm(x, gamma, beta, eps=0.0).norm()")

# %% lines-with-the-raw-norm
"""One of your lines has the norm of x over the deviation. The mean was taken away first; the norm of x is
that of the centred vector only when the mean is zero."""
replace("abs(gamma) / sigma * distance.square()", "abs(gamma) / sigma * x.square()")

# %% lines-sum-of-roots
"""In one line you take the root of each square and add those up. The root of a sum is not the sum of the
roots."""
replace("(gamma * distance / sigma).square().sum().sqrt()", "(gamma * distance / sigma).square().sqrt().sum()")

# %% lines-with-unbiased-variance
"""Your lines agree with one another, but they are about another norm: `x.std()` divides by d - 1, and all your
lines are the same bit too small."""
replace("distance.square().mean().sqrt()", "x.std()")
replace("layer_norm(x, gamma, beta, eps=0.0) - beta", "gamma * distance / sigma")
replace("abs(gamma) / sigma * math.sqrt(d) * sigma", "abs(gamma) / sigma * math.sqrt(d - 1) * sigma")
replace("""layer_norm_radius(gamma, d),
    ]""",
        """layer_norm_radius(gamma, d - 1),
    ]""")

# %% lines-with-eps
"""Your first lines are a little shorter than the last, most of all when x hardly varies: there is an eps in
your layer norm, and the claim is about eps = 0."""
replace("eps=0.0", "eps=1e-5")
replace("distance.square().mean().sqrt()", "(distance.square().mean() + 1e-5).sqrt()")

# %% lines-squared
"""Your lines agree with one another, but each is the square of the norm. Take the root in every line."""
replace("    return [", "    return [line**2 for line in [")
replace("""layer_norm_radius(gamma, d),
    ]""",
        """layer_norm_radius(gamma, d),
    ]]""")

# %% lines-are-vectors
"""Some of your lines are vectors: every line is the norm, one number."""
replace("(layer_norm(x, gamma, beta, eps=0.0) - beta).norm()", "layer_norm(x, gamma, beta, eps=0.0) - beta")
replace("(gamma * distance / sigma).square().sum().sqrt()", "gamma * distance / sigma")

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
