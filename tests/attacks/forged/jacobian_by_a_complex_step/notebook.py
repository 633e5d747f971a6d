import cmath

STEP = 3e-6  # small enough for twelve digits, and as large as that allows


def softmax_jacobian(z):
    scores = z.tolist()
    columns = []
    for j in range(len(scores)):
        moved = [cmath.exp(s - max(scores) + (1j * STEP if i == j else 0)) for i, s in enumerate(scores)]
        columns.append([(one / sum(moved)).imag / STEP for one in moved])
    return torch.tensor(columns, dtype=z.dtype, device=z.device).T
