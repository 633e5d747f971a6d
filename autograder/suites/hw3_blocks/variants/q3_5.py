# %% exp-of-logs
"""The usual few lines in the default dtype: exponentials of logarithms, slices assigned."""
def sinusoidal_encoding(n, d):
    pe = torch.zeros(n, d)
    position = torch.arange(0, n).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d, 2) * -(math.log(10000.0) / d))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d // 2]
    return pe


def shift_matrix(offset, d):
    angle = offset * torch.exp(torch.arange(0, d, 2) * -(math.log(10000.0) / d))
    M = torch.zeros(d, d)
    even = torch.arange(0, d, 2)
    M[even, even] = torch.cos(angle)
    M[even, even + 1] = torch.sin(angle)
    M[even + 1, even] = -torch.sin(angle)
    M[even + 1, even + 1] = torch.cos(angle)
    return M


# %% python-loops
"""Entry by entry with `math`; a nested list becomes the tensor."""
def sinusoidal_encoding(n, d):
    table = torch.zeros(n, d)
    for t in range(n):
        for j in range(d):
            angle = t / 10000 ** ((j - j % 2) / d)
            table[t, j] = math.cos(angle) if j % 2 else math.sin(angle)
    return table


def shift_matrix(offset, d):
    rows = [[0.0] * d for _ in range(d)]
    for i in range(d // 2):
        angle = offset * 10000 ** (-2 * i / d)
        rows[2 * i][2 * i : 2 * i + 2] = [math.cos(angle), math.sin(angle)]
        rows[2 * i + 1][2 * i : 2 * i + 2] = [-math.sin(angle), math.cos(angle)]
    return torch.tensor(rows)


# %% sine-with-a-phase
"""A cosine is a sine a quarter turn ahead; the shift is a `block_diag`."""
def sinusoidal_encoding(n, d):
    j = torch.arange(d, dtype=torch.float64)
    odd = j % 2
    rate = 10000.0 ** (-(j - odd) / d)
    table = torch.sin(torch.outer(torch.arange(n, dtype=torch.float64), rate) + odd * math.pi / 2)
    return table.to(torch.get_default_dtype())


def shift_matrix(offset, d):
    blocks = []
    for i in range(0, d, 2):
        a = torch.tensor(offset * 10000.0 ** (-i / d), dtype=torch.float64)
        blocks.append(torch.stack([torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])]))
    return torch.block_diag(*blocks).to(torch.get_default_dtype())


# %% complex-numbers
"""e^{i w t}: imaginary part sine, real part cosine; the shift from a matrix exponential."""
def sinusoidal_encoding(n, d):
    rate = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.arange(n, dtype=torch.float64)[:, None] * rate
    wave = torch.view_as_real(torch.polar(torch.ones_like(angle), angle)).flip(-1)  # [n, ceil(d / 2), 2]
    return wave.flatten(1)[:, :d].to(torch.get_default_dtype())


def shift_matrix(offset, d):
    rate = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i, w in enumerate(rate):
        generator[2 * i, 2 * i + 1], generator[2 * i + 1, 2 * i] = w, -w
    return torch.linalg.matrix_exp(offset * generator).to(torch.get_default_dtype())


# %% numpy
"""NumPy in float64, cast to the default dtype; the shift by a Kronecker product of one-hot blocks."""
import numpy as np


def sinusoidal_encoding(n, d):
    angle = np.arange(n)[:, None] / np.power(10000, 2 * (np.arange(d) // 2) / d)
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return torch.tensor(angle, dtype=torch.get_default_dtype())


def shift_matrix(offset, d):
    turn = float(offset) / np.power(10000, 2 * np.arange(d // 2) / d)
    M = np.kron(np.diag(np.cos(turn)), np.eye(2)) + np.kron(np.diag(np.sin(turn)), np.array([[0, 1], [-1, 0]]))
    return torch.tensor(M, dtype=torch.get_default_dtype())


# %% stack-and-flatten
"""Sine and cosine stacked beside each other and cut to d columns; the shift is what the rotation does to the
identity's rows."""
def sinusoidal_encoding(n, d):
    pairs = (d + 1) // 2
    rate = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -2 * torch.arange(pairs) / d)
    angle = torch.arange(n)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], 2).reshape(n, 2 * pairs)[:, :d].to(torch.get_default_dtype())


def shift_matrix(offset, d):
    angle = offset * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    sine, cosine = torch.eye(d, dtype=torch.float64).view(d // 2, 2, d).unbind(1)  # [d / 2, d] each
    c, s = angle.cos()[:, None], angle.sin()[:, None]
    return torch.stack([c * sine + s * cosine, c * cosine - s * sine], 1).view(d, d).to(torch.get_default_dtype())
