# %% diagonal-only
"""Your Jacobian is diagonal, but each weight also depends on every other score through the denominator: a
raised score takes from the others. Each row of the Jacobian must sum to zero."""
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(y * (1 - y))")

# %% plus-sign
"""Your off-diagonal entries are positive: raising one score would raise the other weights as well. Check the
sign of the term that comes from the denominator."""
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(y) + torch.outer(y, y)")

# %% direct-term-forgotten
"""Only the denominator's derivative is there: even the diagonal is negative, as if raising a score lowered
its own weight. The numerator depends on the score too."""
replace("return off - torch.diag(off.sum(-1))", "return -torch.outer(y, y)")

# %% log-softmax-jacobian
"""This is the Jacobian of log-softmax: its entries do not vanish where a weight does. You still have to
multiply each row by the weight it belongs to."""
replace("return off - torch.diag(off.sum(-1))", "return torch.eye(len(z), dtype=z.dtype, device=z.device) - y")

# %% sigmoid-derivative
"""You used the derivative of the sigmoid of each score: softmax normalises over all scores together, so start
from the softmax weights and mind the off-diagonal entries."""
replace("y = softargmax(z)", "y = torch.sigmoid(z)")
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(y * (1 - y))")

# %% scores-for-weights
"""Your formula is fed the scores themselves; it needs the softmax weights y, of which z is the logarithm up
to a constant."""
replace("y = softargmax(z)", "y = z")
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(y) - torch.outer(y, y)")

# %% no-max-subtraction price=0.3
"""exp(100) does not fit into float32, so the weights are NaN at (-3, 1, 100, 5, -1): subtract the largest
score before the exponential."""
replace("softargmax(z)", "torch.exp(z) / torch.exp(z).sum()")
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(y) - torch.outer(y, y)")
replace("softmax_jacobian(z.double())", "softmax_jacobian(z)")

# %% saturation-squared
"""You return the sum of the squared entries: the Frobenius norm is its square root."""
replace("torch.linalg.norm(softmax_jacobian(z.double()))", "(softmax_jacobian(z) ** 2).sum()")

# %% saturation-spectral-norm
"""This is the largest singular value of the Jacobian, not its Frobenius norm: `ord=2` of a matrix means the
spectral norm."""
replace("softmax_jacobian(z.double())", "softmax_jacobian(z), ord=2")

# %% saturation-of-the-weights
"""You take the norm of the softmax weights, which tends to 1 when one score dominates. Asked is the norm of
the Jacobian, which vanishes there: the output hardly moves any more."""
replace("softmax_jacobian(z.double())", "softargmax(z)")

# %% saturation-sum-of-magnitudes
"""You add up the magnitudes of the entries. The Frobenius norm adds their squares and takes the root."""
replace("torch.linalg.norm(softmax_jacobian(z.double()))", "softmax_jacobian(z).abs().sum()")

# %% autograd-for-the-formula price=0.6
"""The numbers are right, but autograd works them out. Asked is the formula itself: every entry is made of the weights
alone, with one case on the diagonal and one beside it."""
replace("return off - torch.diag(off.sum(-1))", "return torch.func.jacrev(lambda x: torch.softmax(x, -1))(z)")

# %% sign-flipped
"""All your signs are turned round: the diagonal is negative, as if raising a score lowered its own weight. It is the
weight times (1 minus the weight)."""
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(off.sum(-1)) - off")

# %% vector-times-itself
"""For a vector `y * y.T` is no outer product: a vector has no transpose, so each entry is squared and taken off every
row. Use `torch.outer(y, y)`, or `y[:, None] * y`."""
replace("return off - torch.diag(off.sum(-1))", "return torch.diag(y) - y * y")

# %% finite-differences price=0.6
"""Your Jacobian has only six or seven right digits: it looks like finite differences. Write it as a formula in the
weights, which is exact."""
replace("""    off = -torch.outer(y, y)  # [n, n]
    off = off - torch.diag(off.diagonal())  # right outside the diagonal, 0 on it
    return off - torch.diag(off.sum(-1))""", """    h = 1e-5 * torch.eye(len(z), dtype=z.dtype, device=z.device)
    return torch.stack([(softargmax(z + e) - softargmax(z - e)) / 2e-5 for e in h], -1)""")

# %% float32-inside price=0.2
"""Your Jacobian has the digits of float32, whatever dtype comes in: stay in the dtype of z."""
replace("y = softargmax(z)", "y = softargmax(z.float()).to(z.dtype)")

# %% large-scores-clipped
"""You clip large scores. Scores that all lie beyond your limit then look equal, and the Jacobian is that of a tie."""
replace("y = softargmax(z)", "y = softargmax(z.clamp(-80, 80))")

# %% one-formula-for-all-entries
"""You have y_i (1 - y_j) everywhere. The 1 is there on the diagonal only: for i other than j the entry is -y_i y_j, and
each row sums to 0."""
replace("return off - torch.diag(off.sum(-1))", "return torch.outer(y, 1 - y)")

# %% saturation-upside-down
"""Your saturation is 1 minus the norm. Asked is the norm itself: a small value means a saturated softmax."""
replace("return float(", "return 1 - float(")

# %% saturation-is-the-trace
"""You add up the diagonal: that is the trace. The Frobenius norm takes all entries, squares them, adds and takes the
root."""
replace("torch.linalg.norm(softmax_jacobian(z.double()))", "softmax_jacobian(z.double()).trace()")

# %% wide-finite-differences price=0.6
"""Your Jacobian is right to nine or ten digits only: it looks like finite differences. Write it as a formula in the
weights, which is exact."""
replace("""    off = -torch.outer(y, y)  # [n, n]
    off = off - torch.diag(off.diagonal())  # right outside the diagonal, 0 on it
    return off - torch.diag(off.sum(-1))""", """    h = 1e-4 * torch.eye(len(z), dtype=z.dtype, device=z.device)
    return torch.stack([(softargmax(z + e) - softargmax(z - e)) / 2e-4 for e in h], -1)""")
