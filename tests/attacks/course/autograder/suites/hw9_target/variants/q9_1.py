# %% by-hand
"""Exponentials over their sum."""
def row_weights(scores, blocked=None):
    e = (scores - scores.detach().amax(-1, keepdim=True)).exp()
    e = e if blocked is None else e * ~blocked
    return e / e.sum(-1, keepdim=True)

# %% logsumexp
"""Through the logarithm."""
def row_weights(scores, blocked=None):
    s = scores if blocked is None else scores + torch.zeros_like(scores).masked_fill(blocked, -torch.inf)
    return (s - s.logsumexp(-1, keepdim=True)).exp()

# %% where
"""With torch.where."""
def row_weights(scores, blocked=None):
    s = scores if blocked is None else torch.where(blocked, -torch.inf, scores)
    return s.softmax(dim=-1)
