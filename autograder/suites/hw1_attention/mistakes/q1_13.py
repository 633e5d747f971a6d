# %% counted-from-one
"""Your index is one too large: the lines are numbered from 0, as in the list."""
replace("return 3, repaired", "return 4, repaired")

# %% earlier-line-blamed
"""The line you name is still true: it has the same value as the one before it. Evaluate the lines one by one
at some mu and sigma, with more than one entry in mu, and see where the value first changes."""
replace("return 3, repaired", "return 2, repaired")

# %% trace-step-blamed
"""The step to line 1 is right: the two second-moment matrices are the same matrix, so their product is its
square. Evaluate the lines at some mu and sigma and see where the value first changes."""
replace("return 3, repaired", "return 1, repaired")

# %% repair-keeps-the-d
"""Your repaired line still has the factor d in its first term: mu . mu already adds up d entries."""
replace("2 * sigma**2 * (mu @ mu)", "2 * len(mu) * sigma**2 * (mu @ mu)")

# %% repair-loses-the-other-d
"""You took the d away from both terms. The trace of sigma^4 I has d entries, so there it belongs."""
replace("len(mu) * sigma**4", "sigma**4")

# %% repair-assumes-mean-zero
"""Your repaired line does not depend on mu: the first term must be mended, not dropped."""
replace("2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4", "len(mu) * sigma**4")

# %% repair-holds-query-fixed
"""Your repaired line has the first term once instead of twice: that is the variance with q held fixed,
averaged over q. Both q and k vary."""
replace("2 * sigma**2 * (mu @ mu)", "sigma**2 * (mu @ mu)")

# %% repair-gives-the-mean
"""Your repaired line is the mean of q . k. The derivation is about its variance."""
replace("2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4", "mu @ mu")

# %% repair-gives-second-moment
"""Your repaired line is E[(q . k)^2]: the square of the mean, which cancels in the line before, has come
back."""
replace("2 * sigma**2", "(mu @ mu) ** 2 + 2 * sigma**2")
