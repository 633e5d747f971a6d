# %% constant-one
"""Your constant is 1. Two weights, a and 1 - a, have a Jacobian of size 2 a (1 - a), which is more than that."""
replace("2 * (1 - float(largest))", "1 - float(largest)")

# %% constant-root-two
"""Your constant is the root of 2: that counts one row of the Jacobian. The other rows have their share."""
replace("2 * (1 - float(largest))", "math.sqrt(2) * (1 - float(largest))")

# %% constant-four
"""Your constant is 4: true, and twice as large as it need be. Two weights reach 2 in the limit, and nothing exceeds it."""
replace("2 * (1 - float(largest))", "4 * (1 - float(largest))")

# %% two-weights-only
"""Your bound is the size for two weights, 2 a (1 - a). With many small weights the Jacobian can be larger than that."""
replace("2 * (1 - float(largest))", "2 * float(largest) * (1 - float(largest))")

# %% bound-on-the-square
"""That is the square: the Frobenius norm is the root of the sum of the squares."""
replace("2 * (1 - float(largest))", "4 * (1 - float(largest)) ** 2")

# %% another-bound price=0.3
"""1 - largest^2 is a true bound (it is a step on the way). Asked is the smallest c for a bound c (1 - largest)."""
replace("2 * (1 - float(largest))", "1 - float(largest) ** 2")

# %% grows-with-the-weight
"""Your bound grows with the largest weight. The sharper the softmax, the less gets through."""
replace("2 * (1 - float(largest))", "2 * float(largest)")

# %% returns-a-tensor price=0.15
"""You return a tensor. A Python float is asked for."""
replace("2 * (1 - float(largest))", "torch.tensor(2 * (1 - float(largest)))")

# %% square-of-the-rest
"""Your bound is a multiple of the *square* of what the largest weight leaves. Near 1 that is far too small: the
Jacobian goes to 0 in proportion to 1 - largest itself."""
replace("2 * (1 - float(largest))", "2 * (1 - float(largest)) ** 2")
