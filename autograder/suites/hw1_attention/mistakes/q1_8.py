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

# %% moments-minus-square-of-the-mean
"""In your line from moments you subtract the square of the whole mean, (q1 . k1)^2. E[(q . k)^2] is a double sum
over i and j, and the terms with i != j belong to it too. Take the products one by one: their variances add."""
replace("(q2 * k2 - (q1 * k1) ** 2).sum()", "(q2 * k2).sum() - (q1 @ k1) ** 2")

# %% moments-without-the-mean
"""Your line from moments is the sum of E[q_i^2] E[k_i^2]: the squared means (q1_i k1_i)^2 still have to be
subtracted."""
replace("q2 * k2 - (q1 * k1) ** 2", "q2 * k2")

# %% moments-read-as-variances
"""You treat q2 and k2 as variances. They are raw second moments: E[q_i^2] already has the squared mean in it."""
replace("q2 * k2 - (q1 * k1) ** 2", "q2 * k2 + q2 * k1**2 + k2 * q1**2")

# %% moments-centred-first
"""You multiply the two variances, (q2 - q1^2) (k2 - k1^2). That is the variance of a product only where both means
are 0."""
replace("q2 * k2 - (q1 * k1) ** 2", "(q2 - q1**2) * (k2 - k1**2)")

# %% closed-form-for-every-line price=0.6
"""Your line from moments is the closed form of normal entries with one mean and one variance in disguise: it does not
use the letters of k. In this line q and k have laws of their own."""
replace("(q2 * k2 - (q1 * k1) ** 2).sum()", "(2 * (q2 - q1**2) * q1**2 + (q2 - q1**2) ** 2).sum()")
replace("(vq * vk + vq * mk**2 + mq**2 * vk).sum()", "(2 * vq * mq**2 + vq**2).sum()")

# %% means-query-held-fixed
"""In your line from means one term is missing: vq mk^2. You hold q fixed and average the variance that is left; the
mean given q moves with q too."""
replace("vq * vk + vq * mk**2 + mq**2 * vk", "vq * vk + mq**2 * vk")

# %% means-key-held-fixed
"""In your line from means one term is missing: mq^2 vk. You let q vary and hold k fixed on average; k varies too."""
replace("vq * vk + vq * mk**2 + mq**2 * vk", "vq * vk + vq * mk**2")

# %% means-without-product-of-variances
"""In your line from means the term vq vk is missing. For small variances it is small, but it is all that is left when
the means are 0."""
replace("vq * vk + vq * mk**2 + mq**2 * vk", "vq * mk**2 + mq**2 * vk")

# %% means-product-of-variances
"""Your line from means is the product of the variances, which is the variance of a product only where both means are
0."""
replace("vq * vk + vq * mk**2 + mq**2 * vk", "vq * vk")

# %% means-paired-with-their-own
"""In your line from means each variance meets its own mean, vq mq^2. It is the other factor's mean that a variance is
multiplied with: vq mk^2."""
replace("vq * mk**2 + mq**2 * vk", "vq * mq**2 + mk**2 * vk")

# %% means-read-as-deviations
"""You square vq and vk: they are variances already, not standard deviations."""
replace("vq * vk + vq * mk**2 + mq**2 * vk", "(vq * vk) ** 2 + vq**2 * mk**2 + mq**2 * vk**2")

# %% lines-not-summed
"""Your lines from moments and from means return one number per entry. The variance of q . k is their sum."""
replace("(q2 * k2 - (q1 * k1) ** 2).sum()", "q2 * k2 - (q1 * k1) ** 2")
replace("(vq * vk + vq * mk**2 + mq**2 * vk).sum()", "vq * vk + vq * mk**2 + mq**2 * vk")

# %% variance-is-a-deviation price=0.3
"""You return the standard deviation of q . k: the variance is its square."""
replace("return 2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4", "return (2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4) ** 0.5")

# %% variance-last-term-once
"""Your last term is sigma^4 once. There are d products, and each brings its own."""
replace("len(mu) * sigma**4", "sigma**4")
