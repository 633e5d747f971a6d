# %% right-derivation-blamed price=0.25
"""You blame one_query. It answers its own question, the spread of one query's scores, and every line of it is true. It
would be false as the variance of q . k, which is another question."""
replace('"variance": ("closed", variance),', '"variance": ("closed", variance), "one_query": ("fixed", variance),')

# %% variance-earlier-line-blamed price=0.2
"""In variance the line you name is still true: it has the same value as the one before it. Evaluate the lines with
more than one entry in mu, and see where the value first changes."""
replace('("closed", variance)', '("traces", variance)')

# %% last-line-blamed price=0.2
"""In shuffled_tokens the last line is true: it is the theorem. The slip is in a line before it; two slips can cancel."""
replace('("cancelled", shuffled)', '("output", shuffled)')

# %% shuffled-tokens-stand price=0.25
"""You let shuffled_tokens stand. Its first and its last line agree, but the one between them does not: P and P^T stand
on different sides of the scores."""
replace('"shuffled_tokens": ("cancelled", shuffled),', "")

# %% sensitive-stands price=0.25
"""You let sensitive stand. A factor that vanishes takes the product with it: a saturated softmax hardly reacts."""
replace('"sensitive": ("saturated", reaction),', "")

# %% longer-key-stands price=0.25
"""You let longer_key stand. It holds where q . k_j > 0; try arguments where the query and the key point apart."""
replace('"longer_key": ("wins", limit),', "")

# %% copy-stands price=0.25
"""You let copy stand. A max pooling takes the largest entry of every column, from different tokens; attention hands
over the vector of one token."""
replace('"copy": ("pooled", copied),', "")

# %% variance-stands price=0.25
"""You let variance stand. Its last line has one factor d too many; with one entry in mu, or with mu = 0, that cannot be
seen."""
replace('"variance": ("closed", variance),', "")

# %% repair-keeps-the-d price=0.2
"""Your repaired variance still has the factor d in its first term: mu . mu already adds up d entries."""
replace("2 * sigma**2 * (mu @ mu)", "2 * len(mu) * sigma**2 * (mu @ mu)")

# %% repair-loses-the-other-d price=0.2
"""You took the d away from both terms of the variance. The trace of sigma^4 I has d entries, so there it belongs."""
replace("len(mu) * sigma**4", "sigma**4")

# %% repair-holds-query-fixed price=0.2
"""Your repaired variance has the first term once instead of twice: that is the variance with q held fixed,
averaged over q. Both q and k vary."""
replace("2 * sigma**2 * (mu @ mu)", "sigma**2 * (mu @ mu)")

# %% copy-of-the-largest-values price=0.2
"""Your repair of copy still looks at the values: which vector is handed over is decided by the scores alone."""
replace("V[s.argmax()]", "V[V.sum(1).argmax()]")

# %% shrinking-key-keeps-its-weight price=0.2
"""Your repair of longer_key leaves the output as it was where q . k_j < 0. There the score goes to minus infinity and
the key drops out."""
replace("return elongated_limit(q, K, V, j, 1.0)", "return V[j] if K[j] @ q > 0 else softargmax(K @ q) @ V")

# %% shrinking-key-gives-zero price=0.2
"""Your repair of longer_key gives 0 where q . k_j < 0. The key drops out, and the others share the weight."""
replace("return elongated_limit(q, K, V, j, 1.0)", "return V[j] if K[j] @ q > 0 else 0 * V[j]")

# %% shuffled-repair-is-invariant price=0.2
"""Your repair of shuffled_tokens is Sa(X): the rows of the output are permuted too."""
replace("X @ Wv, P)", "X @ Wv, torch.eye(len(P)).to(P))")

# %% counted-lines price=0.2
"""You name lines by number. The lines have names, such as "closed"."""
replace('("closed", variance)', "(3, variance)")
replace('("pooled", copied)', "(2, copied)")
replace('("wins", limit)', "(2, limit)")
replace('("cancelled", shuffled)', "(1, shuffled)")
replace('("saturated", reaction)', "(2, reaction)")

# %% limit-forgets-the-zero price=0.1
"""Your repaired limit has two cases. There is a third: where q . k_j is 0 the score stays 0 however long the key is, and
the output is what it was."""
replace("return elongated_limit(q, K, V, j, 1.0)", "return elongated_limit(q, K, V, j, 1.0) if q @ K[j] else V[j]")

# %% limit-drops-the-key-at-zero price=0.1
"""Your repaired limit lets the key lose where q . k_j is 0. Its score stays 0 there, however long the key is: the output
is what it was."""
replace("return elongated_limit(q, K, V, j, 1.0)",
        """rest = torch.arange(len(K)) != j
        return elongated_limit(q, K, V, j, 1.0) if q @ K[j] else softargmax(K[rest] @ q) @ V[rest]""")

# %% reaction-repaired-as-zero price=0.2
"""You repair `sensitive` by 0: the reaction vanishes in the limit only. The line before it, y_m (1 - y_m), is right
everywhere."""
replace("return y[-1] * y[:-1].sum()", "return 0 * y[-1]")
