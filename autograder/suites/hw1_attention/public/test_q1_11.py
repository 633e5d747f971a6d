"""Public checks of q1_11: equivariance_lines."""

import torch

from course_utils.checking.compare import check, same, tensor

F64 = torch.float64


def _lines(equivariance_lines, X, P, *weights):
    lines = equivariance_lines(X, P, *weights)
    check(isinstance(lines, (list, tuple)), "equivariance_lines returns a list of matrices")
    check(len(lines) >= 3, f"the proof has {len(lines)} lines, at least three are asked for")
    return [tensor(line, f"line {i}", shape=X.shape, dtype=X.dtype) for i, line in enumerate(lines)]


def _draw(rng, N=4, D=3):
    X, *weights = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((N, D), (D, D), (D, D), (D, D)))
    return X, *(W / D**0.5 for W in weights)


def test_lines_are_equal(equivariance_lines, rng):
    """At least three lines, every line an [N, D] matrix, and each equal to the one before it."""
    X, *weights = _draw(rng)
    P = torch.eye(4, dtype=F64)[[2, 0, 3, 1]]  # row i of P X is row [2, 0, 3, 1][i] of X
    lines = _lines(equivariance_lines, X, P, *weights)
    for i in range(1, len(lines)):
        same(lines[i], lines[i - 1], f"line {i}, against line {i - 1}", rtol=1e-6, atol=1e-8)


def test_permutation_moves_the_rows(equivariance_lines, rng):
    """With P = I every line is Sa(X); with another P the same rows come out in another order."""
    X, *weights = _draw(rng)
    order = [1, 2, 3, 0]
    plain = _lines(equivariance_lines, X, torch.eye(4, dtype=F64), *weights)[-1]
    moved = _lines(equivariance_lines, X, torch.eye(4, dtype=F64)[order], *weights)[0]
    check((plain[0] - plain[1]).abs().max() > 1e-9, "all rows of Sa(X) are equal")
    same(moved, plain[order], "Sa(P X), against the rows of Sa(X) in their new order", rtol=1e-6, atol=1e-8)


def test_uniform_attention(equivariance_lines, rng):
    """With Wq = 0 every weight is 1/N, so each row of Sa(X) is the mean of X Wv."""
    X, Wq, Wk, Wv = _draw(rng)
    lines = _lines(equivariance_lines, X, torch.eye(4, dtype=F64)[[3, 0, 1, 2]], 0 * Wq, Wk, Wv)
    expected = (X @ Wv).mean(0, keepdim=True).expand(4, 3)
    same(lines[0], expected, "the first line with Wq = 0", rtol=1e-6, atol=1e-8)
    same(lines[-1], expected, "the last line with Wq = 0", rtol=1e-6, atol=1e-8)


def _inputs():
    X, *weights = _draw(torch.Generator().manual_seed(111), 5, 3)
    return X, torch.eye(5, dtype=F64)[[2, 0, 4, 1, 3]], *weights


def probe_first_broken_step(equivariance_lines):
    lines = list(equivariance_lines(*_inputs()))
    broken = [not torch.allclose(a, b) for a, b in zip(lines, lines[1:], strict=False)]
    return broken.index(True) if True in broken else -1


def probe_first(equivariance_lines):
    return equivariance_lines(*_inputs())[0]


def probe_second(equivariance_lines):
    return equivariance_lines(*_inputs())[1]


def probe_last(equivariance_lines):
    return equivariance_lines(*_inputs())[-1]


def probe_identity(equivariance_lines):
    X, P, *weights = _inputs()
    return equivariance_lines(X, torch.eye(5, dtype=F64), *weights)[0]


def probe_count(equivariance_lines):
    return len(equivariance_lines(*_inputs())) >= 3


def probe_dtype(equivariance_lines):
    return str(equivariance_lines(*(part.float() for part in _inputs()))[0].dtype)
