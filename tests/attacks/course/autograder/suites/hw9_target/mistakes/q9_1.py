# %% no-softmax
"""The scores come back as they were: exponentiate and divide by the sum."""
def row_weights(scores, blocked=None):
    return scores if blocked is None else scores.masked_fill(blocked, 0)

# %% wrong-axis
"""The columns sum to 1: normalise along the last axis."""
def row_weights(scores, blocked=None):
    return torch.softmax(scores if blocked is None else scores.masked_fill(blocked, -torch.inf), 0)

# %% not-normalised
"""The exponentials are not divided by their sum."""
def row_weights(scores, blocked=None):
    return scores.exp() if blocked is None else scores.exp().masked_fill(blocked, 0)

# %% upside-down
"""The largest score has the smallest weight: mind the sign."""
def row_weights(scores, blocked=None):
    return torch.softmax(-scores if blocked is None else (-scores).masked_fill(blocked, -torch.inf), -1)
