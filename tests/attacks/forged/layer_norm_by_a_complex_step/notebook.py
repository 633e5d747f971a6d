# A step along the imaginary axis loses no digits: a derivative to the last bit, and no formula.
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    D, g = x.shape[-1], gamma * dy
    z = x + 1e-30j * g
    c = z - z.mean(-1, keepdim=True)
    y = c / torch.sqrt((c * c).mean(-1, keepdim=True) + eps)
    return y.imag / 1e-30, (dy * y.real).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)
