# %% by-hand-exponentials
"""Maximum, exponential and sum written out, blocked entries multiplied away."""
def softargmax(scores, beta=1.0, dim=-1):
    open_ = scores != -math.inf
    z = beta * torch.where(open_, scores, 0.0)
    floor = torch.finfo(z.dtype).min
    top = torch.where(open_, z, floor).amax(dim, keepdim=True).detach()
    e = torch.where(open_, torch.exp(torch.where(open_, z - top, 0.0)), 0.0)
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total > 0, total, 1.0)


# %% logsumexp
"""exp(z - logsumexp(z)) of scores that already lie below their maximum; dead slices replaced before and
after."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    dead = blocked.all(dim, keepdim=True)
    z = (beta * scores.masked_fill(blocked, 0.0)).masked_fill(blocked & ~dead, -math.inf)
    z = z - z.amax(dim, keepdim=True).detach()  # exact in float32 before the logarithm comes in
    weights = torch.exp(z - torch.logsumexp(z, dim, keepdim=True))
    return weights.masked_fill(dead, 0.0)


# %% masked-fill-then-nan-to-num
"""NaN turned into zero after the softmax; the masked fill in front stops the gradient of the blocked
entries."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = torch.isneginf(scores)
    z = torch.where(blocked, torch.zeros_like(scores), scores) * beta
    return F.softmax(z.masked_fill(blocked, -math.inf), dim=dim).nan_to_num(0.0)


# %% log-softmax
"""The exponential of log_softmax, beta applied to the distance from the maximum."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    dead = blocked.all(dim, keepdim=True)
    safe = scores.masked_fill(dead, 0.0)
    gap = safe.masked_fill(blocked & ~dead, 0.0) - safe.amax(dim, keepdim=True).detach()
    z = (beta * gap).masked_fill(blocked & ~dead, -math.inf)
    return torch.where(dead, 0.0, F.log_softmax(z, dim).exp())


# %% loop-over-slices
"""One slice at a time, only its finite entries."""
def softargmax(scores, beta=1.0, dim=-1):
    moved = scores.movedim(dim, -1)
    rows = []
    for row in moved.reshape(-1, moved.shape[-1]):
        weights = torch.zeros_like(row)
        seen = (row != -math.inf).nonzero()[:, 0]
        if len(seen):
            z = beta * row[seen]
            e = (z - z.max()).exp()
            weights = weights.index_put((seen,), e / e.sum())
        rows.append(weights + 0.0 * row.masked_fill(row == -math.inf, 0.0))
    return torch.stack(rows).reshape(moved.shape).movedim(-1, dim)


# %% own-backward
"""An autograd function with the backward pass written by hand."""
class _Softargmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, beta, dim):
        blocked = scores == -math.inf
        z = (beta * scores.masked_fill(blocked, 0.0)).masked_fill(blocked, -math.inf)
        top = z.amax(dim, keepdim=True)
        e = torch.exp(z - top.masked_fill(top == -math.inf, 0.0))
        weights = e / e.sum(dim, keepdim=True).clamp(min=torch.finfo(e.dtype).tiny)
        ctx.save_for_backward(weights)
        ctx.beta, ctx.dim = beta, dim
        return weights

    @staticmethod
    def backward(ctx, grad):
        (weights,) = ctx.saved_tensors
        inner = (grad * weights).sum(ctx.dim, keepdim=True)
        return ctx.beta * weights * (grad - inner), None, None


def softargmax(scores, beta=1.0, dim=-1):
    return _Softargmax.apply(scores, beta, dim)


# %% lowest-number-for-blocked
"""The lowest number of the dtype in the place of -inf, and blocked weights set to zero after the softmax."""
def softargmax(scores, beta=1.0, dim=-1):
    blocked = scores == -math.inf
    z = (beta * scores).masked_fill(blocked, torch.finfo(scores.dtype).min)
    return torch.softmax(z, dim).masked_fill(blocked, 0.0)
