# %% mean-square-of-sum
"""Your mean is the square of the sum of mu: the products mu_i mu_j with i != j do not occur in q . k. Only
equal places are multiplied."""
replace("return mu @ mu", "return mu.sum() ** 2")

# %% mean-of-square
"""Your mean is that of q . q: the d sigma^2 would come from multiplying q by itself. q and k are independent,
so the mean of each product factorises."""
replace("return mu @ mu", "return mu @ mu + len(mu) * sigma**2")

# %% mean-counted-d-times
"""Your mean is d times too large: mu . mu is already the sum over the d entries."""
replace("return mu @ mu", "return len(mu) * (mu @ mu)")

# %% mean-assumed-zero
"""You assume that the entries are centred. Here they have mean mu, and so does the dot product have a
mean."""
replace("return mu @ mu", "return 0.0 * sigma")

# %% variance-extra-d
"""The first term of your variance is d times too large: it mixes one mean for all entries with a vector of
means. mu . mu already adds up d entries."""
replace("return 2 * sigma**2", "return 2 * len(mu) * sigma**2")

# %% variance-query-held-fixed
"""You hold q fixed and average the variance that is left: one of the two terms of the law of total variance.
The mean given q moves with q as well, and its variance is missing."""
replace("return 2 * sigma**2", "return sigma**2")

# %% variance-assumed-centred
"""Your variance does not depend on mu: it is right only for entries with mean zero."""
replace("return 2 * sigma**2 * (mu @ mu) +", "return")

# %% variance-of-square
"""This is the variance of q . q. q and k are two independent vectors, not one."""
replace("return 2 * sigma**2 * (mu @ mu) +", "return 4 * sigma**2 * (mu @ mu) + 2 *")

# %% second-moment-for-variance
"""You return the mean of the square. The square of the mean still has to be subtracted."""
replace("return 2 * sigma**2", "return (mu @ mu) ** 2 + 2 * sigma**2")

# %% sigma-read-as-variance
"""You read sigma as the variance of an entry: in N(mu, sigma^2 I) it is the standard deviation."""
replace("return 2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4", "return 2 * sigma * (mu @ mu) + len(mu) * sigma**2")

# %% unit-scale-d
"""Dividing by d leaves a variance of 1 / d: a divisor enters the variance squared."""
replace("return math.sqrt(d)", "return float(d)")

# %% unit-scale-inverted
"""You return the factor to multiply with. Asked is the divisor, which grows with d."""
replace("return math.sqrt(d)", "return 1 / math.sqrt(d)")

# %% unit-scale-root-of-deviation
"""You take one root too many: after your division the variance still grows like the root of d."""
replace("return math.sqrt(d)", "return math.sqrt(math.sqrt(d))")

# %% lines-without-cross-terms
"""The first line of your derivation loses the products of different places: E[(q . k)^2] is a double sum over
i and j, and the terms with i != j vanish only when the means are zero."""
replace("(second * second - (mu * mu) ** 2).sum()", "(second * second).sum() - (mu @ mu) ** 2")

# %% lines-are-pieces
"""Your lines are the parts of the sum. In a derivation every line is the whole variance, written in another
way, so all lines have the same value."""
def variance_lines(mu, sigma):
    m = mu @ mu
    return [2 * sigma**2 * m, len(mu) * sigma**4, 2 * sigma**2 * m + len(mu) * sigma**4]

# %% lines-start-at-second-moment
"""Your first line is E[(q . k)^2] alone: the square of the mean is subtracted only from the second line on,
so the first equals sign is false."""
replace("(second * second - (mu * mu) ** 2).sum()", "(second * second - (mu * mu) ** 2).sum() + (mu @ mu) ** 2")

# %% lines-too-few
"""A start and an end are no derivation: give at least three lines, with the step between."""
def variance_lines(mu, sigma):
    d, m = len(mu), mu @ mu
    return [m**2 + 2 * sigma**2 * m + d * sigma**4 - m**2, 2 * sigma**2 * m + d * sigma**4]
