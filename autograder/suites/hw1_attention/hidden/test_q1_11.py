"""Hidden checks of q1_11: line_shuffled, line_scores, line_weights and line_output."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, same, tensor

F64 = torch.float64
CLOSE = {"rtol": 1e-6, "atol": 1e-8}
SHAPES = ((5, 3), (4, 6), (1, 2), (4, 4))  # N, D


def _draw(rng, N=5, D=3, dtype=F64):
    """X [N, D], a permutation matrix [N, N], not its own inverse where that can be, and lively Wq, Wk, Wv [D, D]."""
    order = torch.randperm(N, generator=rng)
    while N > 2 and torch.equal(order[order], torch.arange(N)):
        order = torch.randperm(N, generator=rng)
    X, *weights = (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((N, D), (D, D), (D, D), (D, D)))
    return X, torch.eye(N, dtype=dtype)[order], *(1.5 * W / math.sqrt(D) for W in weights)


def _letters(rng, N=5, D=3, dtype=F64):
    """Any matrix for scores or weights, values, and any square matrix in place of a permutation."""
    return tuple(torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((N, N), (N, D), (N, N)))


def _rows(scores):
    """Softmax over the last axis, row by row."""
    return torch.stack([torch.softmax(row, -1) for row in scores])


def _attend(X, Wq, Wk, Wv):
    """Self-attention, query by query."""
    queries, keys, values = X @ Wq, X @ Wk, X @ Wv
    return torch.stack([torch.softmax(keys @ q / math.sqrt(X.shape[1]), -1) @ values for q in queries])


@pytest.mark.weight(2)
def test_shuffled(line_shuffled, rng):
    """line_shuffled is Sa(P X): attention over keys with the scale 1 / sqrt(D), on the shuffled rows."""
    for N, D in SHAPES:
        X, P, Wq, Wk, Wv = _draw(rng, N, D)
        scores, values, root = (P @ X @ Wq) @ (P @ X @ Wk).T, P @ X @ Wv, math.sqrt(D)
        got = tensor(line_shuffled(X, P, Wq, Wk, Wv), "line_shuffled", X.shape, X.dtype)
        same_or_because(got, _attend(P @ X, Wq, Wk, Wv), f"line_shuffled at N = {N}, D = {D}", {
            "the softmax runs over the queries, not over the keys": torch.softmax(scores / root, 0) @ values,
            "the scale 1 / sqrt(D) is missing": torch.softmax(scores, -1) @ values,
            "the scale is 1 / sqrt(N) where 1 / sqrt(D) belongs": torch.softmax(scores / math.sqrt(N), -1) @ values,
            "this is Sa(X), without P": _attend(X, Wq, Wk, Wv),
            "this is the inverse permutation, P^T in place of P": P.T @ _attend(X, Wq, Wk, Wv),
            "queries and keys have changed places": torch.softmax(scores.T / root, -1) @ values,
        }, **CLOSE)


@pytest.mark.weight(2)
def test_shuffled_by_any_matrix(line_shuffled, rng):
    """line_shuffled is Sa(P X) for a square matrix that is no permutation as well, where P Sa(X) is another thing."""
    for N, D in SHAPES[:2]:
        X, _, *weights = _draw(rng, N, D)
        P = _letters(rng, N, D)[2]
        same_or_because(line_shuffled(X, P, *weights), _attend(P @ X, *weights), "line_shuffled for any P", {
            "this is P Sa(X), the end of the proof: begin with its start": P @ _attend(X, *weights),
            "P is read as a list of places, and here it is a matrix like any other":
                _attend(X[P.argmax(1)], *weights),
        }, **CLOSE)


@pytest.mark.weight(2)
def test_scores(line_scores, rng):
    """line_scores is softmax(P S P^T) P V as it stands, for any numbers."""
    for N, D in SHAPES:
        S, V, P = _letters(rng, N, D)
        same_or_because(tensor(line_scores(S, V, P), "line_scores", V.shape, V.dtype),
                        _rows(P @ S @ P.T) @ P @ V, f"line_scores at N = {N}, D = {D}", {
            "P is cancelled against P^T inside the softmax": _rows(S) @ P @ V,
            "P is pulled out of the softmax, which is the step after this line": P @ _rows(S) @ P.T @ P @ V,
            "this is the last line, P softmax(S) V": P @ _rows(S) @ V,
            "P and P^T have changed sides": _rows(P.T @ S @ P) @ P @ V,
            "the softmax runs over the first axis": torch.softmax(P @ S @ P.T, 0) @ P @ V,
            "the P before the values is missing": _rows(P @ S @ P.T) @ V,
            "S is scaled again, and the scale is already in it": _rows(P @ S @ P.T / math.sqrt(D)) @ P @ V,
        }, **CLOSE)


@pytest.mark.weight(2)
def test_weights(line_weights, rng):
    """line_weights is P A P^T P V as it stands, for any numbers."""
    for N, D in SHAPES:
        A, V, P = _letters(rng, N, D)
        same_or_because(tensor(line_weights(A, V, P), "line_weights", V.shape, V.dtype), P @ A @ P.T @ P @ V,
                        f"line_weights at N = {N}, D = {D}", {
            "P^T P is cancelled, which is the step after this line": P @ A @ V,
            "a softmax runs over A, which holds the weights already": P @ _rows(A) @ P.T @ P @ V,
            "the P before the values is missing": P @ A @ P.T @ V,
            "P and P^T have changed sides": P.T @ A @ P @ P @ V,
        }, **CLOSE)


@pytest.mark.weight(2)
def test_output(line_output, rng):
    """line_output is P A V as it stands, for any numbers."""
    for N, D in SHAPES:
        A, V, P = _letters(rng, N, D)
        same_or_because(tensor(line_output(A, V, P), "line_output", V.shape, V.dtype), P @ A @ V,
                        f"line_output at N = {N}, D = {D}", {
            "that is A V: P is missing": A @ V,
            "that is P^T A V, the inverse permutation": P.T @ A @ V,
            "P^T P is not cancelled yet: this is the line before": P @ A @ P.T @ P @ V,
            "a softmax runs over A, which holds the weights already": P @ _rows(A) @ V,
            "P stands between A and V": A @ P @ V,
        }, **CLOSE)


@pytest.mark.weight(2)
def test_proof(line_shuffled, line_scores, line_weights, line_output, rng):
    """For permutations of several lengths each line equals the one before it; the first step that fails is named."""
    for N, D in (*SHAPES, (6, 2)):
        X, P, Wq, Wk, Wv = _draw(rng, N, D)
        S, V = (X @ Wq) @ (X @ Wk).T / math.sqrt(D), X @ Wv
        A = _rows(S)
        lines = {"line_shuffled": line_shuffled(X, P, Wq, Wk, Wv), "line_scores": line_scores(S, V, P),
                 "line_weights": line_weights(A, V, P), "line_output": line_output(A, V, P)}
        names = list(lines)
        for before, name in zip(names, names[1:], strict=False):
            same(lines[name], lines[before], f"the step from {before} to {name} is no equality: {name}", **CLOSE)


def test_large_scores(line_scores, rng):
    """Scores of some hundreds give finite lines."""
    S, V, P = _letters(rng)
    got = tensor(line_scores(200 * S, V, P), "line_scores", V.shape, V.dtype)
    check(got.isfinite().all(), "line_scores is not finite for scores of some hundreds")
    same(got, _rows(P @ (200 * S) @ P.T) @ P @ V, "line_scores for large scores", **CLOSE)


def test_float32(line_shuffled, line_scores, line_weights, line_output, rng):
    """float32 inputs give float32 lines."""
    X, P, *weights = _draw(rng, dtype=torch.float32)
    same(line_shuffled(X, P, *weights), P @ _attend(X, *weights), "line_shuffled", rtol=1e-3, atol=1e-4)
    S, V, P = _letters(rng, dtype=torch.float32)
    same(line_scores(S, V, P), _rows(P @ S @ P.T) @ P @ V, "line_scores", rtol=1e-3, atol=1e-4)
    same(line_weights(S, V, P), P @ S @ P.T @ P @ V, "line_weights", rtol=1e-3, atol=1e-4)
    same(line_output(S, V, P), P @ S @ V, "line_output", rtol=1e-3, atol=1e-4)
