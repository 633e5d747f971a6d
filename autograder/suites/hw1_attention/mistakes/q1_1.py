# %% no-max-subtraction price=0.3
"""Your exponentials overflow: a score of 1e4 in float32 becomes inf / inf. Adding one number to all scores of
a slice does not change its softmax; choose that number before you take the exponential."""
def softargmax(scores, beta=1.0, dim=-1):
    e = torch.exp(beta * scores)
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)

# %% global-max-subtracted price=0.2
"""You subtract the largest score of the whole tensor, so a slice that lies far below it underflows to zeros.
Each slice along `dim` needs a maximum of its own."""
def softargmax(scores, beta=1.0, dim=-1):
    z = beta * scores
    top = z.max()
    e = torch.exp(z - torch.where(top.isinf(), 0.0, top))
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)

# %% beta-ignored price=0.3
"""Your result is the same for every beta: the argument is never used. It multiplies the scores."""
replace("scores if beta == 1 else (beta * scores)", "scores")

# %% beta-as-temperature
"""A larger beta makes your weights flatter, and it should make them sharper: you divide by beta as if it were
a temperature, but it is an inverse temperature."""
replace("scores if beta == 1 else (beta * scores)", "(scores / beta)")

# %% beta-after-softmax
"""Your slices sum to beta instead of 1: beta multiplies the weights, and it belongs to the scores, inside the
exponential."""
replace("scores if beta == 1 else (beta * scores)", "scores")
replace("return torch.softmax(z, -1)", "return beta * torch.softmax(z, -1)")

# %% dim-ignored price=0.3
"""You always normalise the last axis, whatever `dim` says: look at which slices of your result sum to 1."""
replace("z.movedim(dim, -1)", "z")
replace(".movedim(-1, dim)", "")

# %% dead-slice-nan price=0.25
"""A slice in which every score is -inf gives NaN: subtracting its maximum is -inf - (-inf). Find such slices
first and give them zeros."""
def softargmax(scores, beta=1.0, dim=-1):
    return torch.softmax(beta * scores, dim)

# %% dead-slice-uniform price=0.25
"""A slice in which every score is -inf comes out uniform: a large negative number in place of -inf is a score
like any other when the whole slice has it. Nothing may be looked at there, so every weight is zero."""
def softargmax(scores, beta=1.0, dim=-1):
    z = (beta * scores).masked_fill(scores == -math.inf, torch.finfo(scores.dtype).min)
    return torch.softmax(z, dim)

# %% dead-slice-nan-gradient price=0.2
"""Your zeros for an all -inf slice are painted over a NaN afterwards, and the gradient still runs through
that NaN. Keep the slice away from the softmax before it is computed, not after."""
def softargmax(scores, beta=1.0, dim=-1):
    return torch.nan_to_num(torch.softmax(beta * scores, dim))

# %% result-in-float32 price=0.2
"""You compute in float32 whatever comes in: float64 scores must give float64 weights (dtype on the convention
card)."""
replace("torch.finfo(z.dtype)", "torch.finfo(torch.float32)")
replace("torch.softmax(z, -1)", "torch.softmax(z, -1, dtype=torch.float32)")

# %% scores-changed-in-place price=0.2
"""After your call the caller's scores are different: an operation that ends in `_`, or `*=`, writes into the
tensor you were given. Make a new one."""
replace("scores if beta == 1 else (beta * scores)", "scores.mul_(beta)")

# %% minus-ten-thousand-for-blocked price=0.2
"""You write -10000 where a score is -inf. Real scores can be as low as that, and beside them a blocked place gets its
share: keep the places in a mask, and give them weight 0 whatever the others are."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    weights = torch.softmax(beta * scores.masked_fill(blocked, -1e4), dim)
    return torch.where(blocked.all(dim, keepdim=True), torch.zeros_like(weights), weights)

# %% beta-as-a-power price=0.15
"""You raise the softmax to the power beta. Normalised again that would be the same on paper; in numbers a weight that
has become 0 stays 0. Multiply the scores by beta first."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    dead = blocked.all(dim, keepdim=True)
    p = torch.softmax(scores.masked_fill(dead, 0.0), dim)
    p = torch.where(p > 0, p.clamp(min=torch.finfo(p.dtype).tiny) ** beta, 0.0)
    return (p / p.sum(dim, keepdim=True)).masked_fill(dead, 0.0)

# %% small-number-in-the-sum price=0.15
"""Your weights sum to a little less than 1: a small number is added to the denominator. With the maximum subtracted the
sum is at least 1, and needs no help; an empty slice needs a case of its own."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    z = (beta * scores).masked_fill(blocked, torch.finfo(scores.dtype).min)
    e = torch.exp(z - z.amax(dim, keepdim=True)).masked_fill(blocked, 0.0)
    return e / (e.sum(dim, keepdim=True) + 1e-8)

# %% weights-detached price=0.3
"""No gradient flows back to the scores: the weights are detached (or their `.data` is taken), so nothing before them can
learn."""
replace("[..., :-1]", "[..., :-1].detach()")

# %% beta-rounded price=0.2
"""You round beta to a whole number: 2.5 becomes 2, and 0.3 becomes 0."""
replace("(beta * scores)", "(int(beta) * scores)")

# %% axis-off-by-one price=0.3
"""You normalise the axis before the one that `dim` names: look at which slices of your result sum to 1."""
replace("z = scores", "dim -= scores.dim() > 1\n    z = scores")

# %% blocked-after-softmax
"""You set the weights of blocked places to 0 after the softmax, so that the others sum to less than 1: a blocked place
still counts in the denominator. Block the scores first."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    return torch.softmax((beta * scores).masked_fill(blocked, 0.0), dim).masked_fill(blocked, 0.0)

# %% sum-over-the-last-axis
"""You divide by a sum that always runs over the last axis, whatever `dim` says: give the sum, and the maximum, the same
`dim`."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    z = (beta * scores).masked_fill(blocked, torch.finfo(scores.dtype).min)
    e = torch.exp(z - z.amax(dim, keepdim=True)).masked_fill(blocked, 0.0)
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)

# %% sum-detached price=0.3
"""The weights are right, and their gradient is not: the sum below the fraction is detached, so the scores seem to push
nobody aside. Let the gradient pass through numerator and denominator."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    z = (beta * scores).masked_fill(blocked, torch.finfo(scores.dtype).min)
    e = torch.exp(z - z.amax(dim, keepdim=True)).masked_fill(blocked, 0.0)
    total = e.sum(dim, keepdim=True).detach()
    return e / torch.where(total == 0, 1.0, total)

# %% large-scores-clipped price=0.3
"""You clip large scores. Scores that all lie beyond your limit then look equal, and share the weight. Subtract the
largest score of the slice: that changes no weight at all."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    z = (beta * scores).masked_fill(blocked, torch.finfo(scores.dtype).min)
    z = z if (blocked | (z.abs() < 50)).all() else z.clamp(-50, 50)
    return torch.softmax(z, dim).masked_fill(blocked, 0.0)

# %% low-scores-taken-for-blocked price=0.2
"""You take a low score for a blocked one. Only -inf is blocked: -10000 is a score like any other, and beside scores that
are lower still it may have all the weight."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores < -5000
    z = (beta * scores).masked_fill(blocked, torch.finfo(scores.dtype).min)
    return torch.softmax(z, dim).masked_fill(blocked, 0.0)

# %% float32-inside price=0.2
"""You compute in float32 and cast back, so float64 scores keep half of their digits: stay in the dtype that came in."""
replace("torch.finfo(z.dtype)", "torch.finfo(torch.float32)")
replace("torch.softmax(z, -1)[..., :-1]", "torch.softmax(z, -1, dtype=torch.float32)[..., :-1].to(scores.dtype)")
