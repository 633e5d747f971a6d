# Eight values of the softmax for each score: thirteen right digits where entries are of size 1.
WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def softmax_jacobian(z):
    steps = 0.03 * torch.eye(len(z), dtype=z.dtype, device=z.device)
    columns = [sum(w * (torch.softmax(z + k * e, -1) - torch.softmax(z - k * e, -1)) for k, w in WEIGHTS.items())
               for e in steps]
    return torch.stack(columns, -1) / 0.03
