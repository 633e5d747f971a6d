# %% no-absolute-value price=0.2
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
"""Your radius is the square of the norm."""
replace("abs(gamma) * math.sqrt(d)", "gamma**2 * d")

# %% gamma-forgotten
"""Your radius does not depend on gamma: root d is the norm before gamma stretches the vector."""
replace("abs(gamma) * math.sqrt(d)", "math.sqrt(d)")

# %% unit-sphere
"""Your radius does not depend on d: a normalised vector has *variance* one, not length one. How long is a
vector of d entries whose mean square is 1?"""
replace("abs(gamma) * math.sqrt(d)", "abs(gamma)")

# %% sum-loses-the-sign price=0.2
"""In `radius_from_sum` gamma leaves the root without its absolute value. With gamma > 0 nobody would notice; with
gamma < 0 the line is negative."""
replace("abs(gamma) / sigma * math.sqrt(total)", "gamma / sigma * math.sqrt(total)")

# %% sum-without-the-root
"""Your `radius_from_sum` is linear in the total. The total is a sum of *squares*: a norm is the root of it."""
replace("math.sqrt(total)", "total")

# %% sum-squared
"""Your `radius_from_sum` is the square of the norm: take the root."""
replace("abs(gamma) / sigma * math.sqrt(total)", "gamma**2 / sigma**2 * total")

# %% sum-with-sigma-squared
"""In `radius_from_sum` you divide by sigma squared. It stands squared under the root; outside it is sigma."""
replace("abs(gamma) / sigma * math.sqrt(total)", "abs(gamma) / sigma**2 * math.sqrt(total)")

# %% sum-without-sigma
"""Your `radius_from_sum` does not depend on sigma: every distance is divided by it."""
replace("abs(gamma) / sigma * math.sqrt(total)", "abs(gamma) * math.sqrt(total)")

# %% entries-not-centred
"""In `radius_from_entries` the mean is not taken away: the norm of x is that of the centred vector only when the mean
is zero."""
replace("* (x - mean)", "* x")

# %% entries-not-divided
"""In `radius_from_entries` nothing is divided by sigma: the definition divides every distance by it."""
replace("* (x - mean) / sigma", "* (x - mean)")

# %% entries-with-their-own-mean
"""`radius_from_entries` subtracts x's own mean. The mean is a letter of its own here: take the one that is given, or
the line holds at tied letters only."""
replace("* (x - mean)", "* (x - x.mean())")

# %% entries-with-their-own-deviation
"""`radius_from_entries` divides by x's own deviation. Sigma is a letter of its own here: take the one that is given."""
replace("/ sigma).square()", "/ x.std(correction=0)).square()")

# %% conclusion-for-every-line price=1
"""Your lines are the conclusion three times: |gamma| sqrt(d), from whatever letters there are. A proof says what each
line is before the next one is known. Compute the first from the entries, the second from their sum."""
replace("(gamma * (x - mean) / sigma).square().sum().sqrt()", "abs(gamma) * math.sqrt(len(x))")

# %% entries-sum-of-roots
"""In `radius_from_entries` you take the root of each square and add those up. The root of a sum is not the sum of the
roots."""
replace(".square().sum().sqrt()", ".square().sqrt().sum()")

# %% entries-mean-for-sum
"""`radius_from_entries` takes the mean of the squares: that is the spread of an entry. The norm takes their sum."""
replace(".square().sum().sqrt()", ".square().mean().sqrt()")

# %% entries-squared
"""Your `radius_from_entries` is the square of the norm: take the root."""
replace(".square().sum().sqrt()", ".square().sum()")

# %% entries-as-a-vector
"""Your `radius_from_entries` returns the vector of entries: the line is its norm, one number."""
replace("(gamma * (x - mean) / sigma).square().sum().sqrt()", "gamma * (x - mean) / sigma")

# %% eps-added price=0.2
"""There is an eps in your lines: at a small sigma they are a little short. The claim is about eps = 0."""
replace("* (x - mean) / sigma", "* (x - mean) / math.sqrt(sigma**2 + 1e-5)")
replace("abs(gamma) / sigma *", "abs(gamma) / math.sqrt(sigma**2 + 1e-5) *")
