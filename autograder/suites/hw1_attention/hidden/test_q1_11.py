"""Hidden checks of q1_11: equivariance_lines."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, same, tensor

F64 = torch.float64
CLOSE = {"rtol": 1e-6, "atol": 1e-8}


def _draw(rng, N=5, D=3, dtype=F64):
    """X [N, D], a permutation matrix [N, N] that is not its own inverse, and lively Wq, Wk, Wv [D, D]."""
    order = torch.randperm(N, generator=rng)
    while torch.equal(order[order], torch.arange(N)):
        order = torch.randperm(N, generator=rng)
    X, *weights = (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((N, D), (D, D), (D, D), (D, D)))
    return X, torch.eye(N, dtype=dtype)[order], *(1.5 * W / math.sqrt(D) for W in weights)


def _attend(X, Wq, Wk, Wv):
    """Self-attention, query by query."""
    queries, keys, values = X @ Wq, X @ Wk, X @ Wv
    return torch.stack([torch.softmax(keys @ q / math.sqrt(X.shape[1]), -1) @ values for q in queries])


def _lines(equivariance_lines, X, P, *weights):
    lines = equivariance_lines(X, P, *weights)
    if isinstance(lines, torch.Tensor) and lines.ndim == 3:
        lines = list(lines)
    check(isinstance(lines, (list, tuple)), "equivariance_lines returns a list with one matrix per line")
    check(len(lines) >= 3, f"the proof has {len(lines)} lines, at least three are asked for")
    return [tensor(line, f"line {i} (counting from 0)", X.shape, X.dtype) for i, line in enumerate(lines)]


def test_form(equivariance_lines, rng):
    """The proof has at least three lines, and every line is a finite matrix [N, D] in the dtype of X."""
    for N, D in ((5, 3), (4, 6)):
        for i, line in enumerate(_lines(equivariance_lines, *_draw(rng, N, D))):
            check(line.isfinite().all(), f"line {i} is not finite")


@pytest.mark.weight(2)
def test_first_line(equivariance_lines, rng):
    """The first line is Sa(P X): attention over keys with the scale 1 / sqrt(D), on the permuted rows."""
    X, P, Wq, Wk, Wv = _draw(rng)
    got = _lines(equivariance_lines, X, P, Wq, Wk, Wv)[0]
    scores, values = (P @ X @ Wq) @ (P @ X @ Wk).T, P @ X @ Wv
    root = math.sqrt(3)
    same_or_because(got, _attend(P @ X, Wq, Wk, Wv), "the first line, against Sa(P X)", {
        "the softmax runs over the queries, not over the keys": torch.softmax(scores / root, 0) @ values,
        "the scale 1 / sqrt(D) is missing": torch.softmax(scores, -1) @ values,
        "the scale is 1 / sqrt(N) where 1 / sqrt(D) belongs": torch.softmax(scores / math.sqrt(5), -1) @ values,
        "this is Sa(X), without P": _attend(X, Wq, Wk, Wv),
        "this is the inverse permutation, P^T in place of P": P.T @ _attend(X, Wq, Wk, Wv),
        "queries and keys have changed places": torch.softmax(scores.T / root, -1) @ values,
    }, **CLOSE)


@pytest.mark.weight(2)
def test_last_line(equivariance_lines, rng):
    """The last line is P Sa(X): the rows of Sa(X) in their new order."""
    X, P, Wq, Wk, Wv = _draw(rng)
    got, attended = _lines(equivariance_lines, X, P, Wq, Wk, Wv)[-1], _attend(X, Wq, Wk, Wv)
    same_or_because(got, P @ attended, "the last line, against P Sa(X)", {
        "that is Sa(X), P is missing": attended,
        "that is P^T Sa(X), the inverse permutation": P.T @ attended,
        "P has come in twice": P @ P @ attended,
    }, **CLOSE)


@pytest.mark.weight(3)
def test_every_step(equivariance_lines, rng):
    """Every line equals the one before it; the first step that fails is named."""
    for N, D in ((5, 3), (4, 6), (6, 2), (4, 4)):
        X, P, *weights = _draw(rng, N, D)
        lines = _lines(equivariance_lines, X, P, *weights)
        check((lines[0] - lines[0].mean(0)).abs().max() > 1e-6, "all rows of the first line are equal")
        for i in range(1, len(lines)):
            same(lines[i], lines[i - 1], f"the step from line {i - 1} to line {i} is no equality (lines count from 0): "
                 f"line {i}", **CLOSE)


@pytest.mark.weight(2)
def test_every_line_is_right(equivariance_lines, rng):
    """Every line, not only the first and the last, is Sa(P X) = P Sa(X)."""
    for N, D in ((5, 4), (7, 3), (5, 5)):
        X, P, *weights = _draw(rng, N, D)
        expected = P @ _attend(X, *weights)
        for i, line in enumerate(_lines(equivariance_lines, X, P, *weights)):
            same(line, expected, f"line {i} (counting from 0)", **CLOSE)


def test_other_permutations(equivariance_lines, rng):
    """The proof also holds for P = I, for a swap of two rows, and for a cyclic shift."""
    X, _, *weights = _draw(rng)
    attended = _attend(X, *weights)
    for name, order in (("P = I", [0, 1, 2, 3, 4]), ("a swap", [0, 3, 2, 1, 4]), ("a shift", [1, 2, 3, 4, 0])):
        for i, line in enumerate(_lines(equivariance_lines, X, torch.eye(5, dtype=F64)[order], *weights)):
            same(line, attended[order], f"line {i} for {name}", **CLOSE)


def test_float32(equivariance_lines, rng):
    """float32 inputs give float32 lines."""
    X, P, *weights = _draw(rng, dtype=torch.float32)
    expected = P @ _attend(X, *weights)
    for i, line in enumerate(_lines(equivariance_lines, X, P, *weights)):
        same(line, expected, f"line {i}", rtol=1e-3, atol=1e-4)
