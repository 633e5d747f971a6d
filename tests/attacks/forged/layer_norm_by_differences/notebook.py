# The derivative of the norm is symmetric: twelve values along gamma * dy give dx, to nearly all digits, with no formula.
WEIGHTS = {1: 6 / 7, 2: -15 / 56, 3: 5 / 63, 4: -1 / 56, 5: 1 / 385, 6: -1 / 5544}


def layer_norm_backward(dy, x, gamma, eps=1e-5):
    def norm(x):
        c = x - x.mean(-1, keepdim=True)
        return c / torch.sqrt(c.square().mean(-1, keepdim=True) + eps)

    D, g = x.shape[-1], gamma * dy
    size = g.norm(dim=-1, keepdim=True)
    step = 0.05 * torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps) / torch.where(size > 0, size, 1)
    dx = sum(w * (norm(x + k * step * g) - norm(x - k * step * g)) for k, w in WEIGHTS.items()) / step
    return dx, (dy * norm(x)).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)
