"""Public checks of q1_11: line_shuffled, line_scores, line_weights and line_output."""

import math

import torch

from course_utils.checking.compare import same, tensor

F64 = torch.float64
ORDER = [2, 0, 3, 1]


def _draw(rng, N=4, D=3, dtype=F64):
    """X [N, D], then Wq, Wk, Wv [D, D]."""
    X, *weights = (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((N, D), (D, D), (D, D), (D, D)))
    return X, *(W / D**0.5 for W in weights)


def _letters(rng, N=4, D=3, dtype=F64):
    """Any scores or weights [N, N], any values [N, D] and any square matrix [N, N]."""
    return tuple(torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((N, N), (N, D), (N, N)))


def _attend(X, Wq, Wk, Wv):
    """Sa(X), one query after the other."""
    keys, values = X @ Wk, X @ Wv
    return torch.stack([torch.softmax(keys @ q / math.sqrt(X.shape[1]), -1) @ values for q in X @ Wq])


def test_shuffled_is_the_definition(line_shuffled, rng):
    """line_shuffled is Sa of the tokens P X: over keys, with the scale 1 / sqrt(D), for any square P."""
    # keeps: shuffled, any-matrix, softmax-axis
    X, *weights = _draw(rng)
    P = torch.eye(4, dtype=F64)[ORDER]  # row i of P X is row ORDER[i] of X
    got = tensor(line_shuffled(X, P, *weights), "line_shuffled", shape=(4, 3))
    same(got, _attend(X[ORDER], *weights), "line_shuffled for a permutation", rtol=1e-6, atol=1e-8)
    P = _letters(rng)[2]
    same(line_shuffled(X, P, *weights), _attend(P @ X, *weights), "line_shuffled for any P", rtol=1e-6, atol=1e-8)


def test_scores_as_they_stand(line_scores, rng):
    """line_scores is softmax(P S P^T) P V, for any S, V and P: the softmax over the last axis."""
    # keeps: scores, any-matrix, softmax-axis
    S, V, P = _letters(rng)
    weights = torch.stack([torch.softmax(row, -1) for row in P @ S @ P.T])
    same(tensor(line_scores(S, V, P), "line_scores", shape=(4, 3)), weights @ (P @ V), "line_scores", rtol=1e-6,
         atol=1e-8)


def test_weights_as_they_stand(line_weights, rng):
    """line_weights is P A P^T P V, for any A, V and P: nothing cancels yet, and there is no softmax."""
    # keeps: weights, any-matrix
    A, V, P = _letters(rng)
    same(tensor(line_weights(A, V, P), "line_weights", shape=(4, 3)), P @ A @ P.T @ P @ V, "line_weights", rtol=1e-6,
         atol=1e-8)


def test_output_as_it_stands(line_output, rng):
    """line_output is P A V, for any A, V and P."""
    # keeps: output, any-matrix
    A, V, P = _letters(rng)
    same(tensor(line_output(A, V, P), "line_output", shape=(4, 3)), P @ A @ V, "line_output", rtol=1e-6, atol=1e-8)


def test_lines_agree_on_a_permutation(line_shuffled, line_scores, line_weights, line_output, rng):
    """For a permutation P, with S and A those of X, each line equals the one before it: the proof."""
    # keeps: agree
    X, Wq, Wk, Wv = _draw(rng)
    P = torch.eye(4, dtype=F64)[ORDER]
    S, V = (X @ Wq) @ (X @ Wk).T / math.sqrt(3), X @ Wv
    A = S.softmax(-1)
    lines = {"line_shuffled": line_shuffled(X, P, Wq, Wk, Wv), "line_scores": line_scores(S, V, P),
             "line_weights": line_weights(A, V, P), "line_output": line_output(A, V, P)}
    names = list(lines)
    for before, name in zip(names, names[1:], strict=False):
        same(lines[name], lines[before], f"{name}, against {before}", rtol=1e-6, atol=1e-8)


def test_lines_keep_the_dtype(line_shuffled, line_scores, line_weights, line_output, rng):
    """float32 in, float32 out."""
    # keeps: dtype
    X, *weights = _draw(rng, 5, 3, torch.float32)
    S, V, P = _letters(rng, 5, 3, torch.float32)
    tensor(line_shuffled(X, P, *weights), "line_shuffled", shape=(5, 3), dtype=torch.float32)
    for name, line in (("line_scores", line_scores), ("line_weights", line_weights), ("line_output", line_output)):
        tensor(line(S, V, P), name, shape=(5, 3), dtype=torch.float32)


def _inputs():
    rng = torch.Generator().manual_seed(111)
    X, *weights = _draw(rng, 5, 3)
    return X, weights, *_letters(rng, 5, 3)


def probe_shuffled(line_shuffled):
    X, weights, *_ = _inputs()
    return line_shuffled(X, torch.eye(5, dtype=F64)[[2, 0, 4, 1, 3]], *weights)


def probe_shuffled_any_matrix(line_shuffled):
    X, weights, _, _, P = _inputs()
    return line_shuffled(X, P, *weights)


def probe_scores(line_scores):
    return line_scores(*_inputs()[2:])


def probe_scores_permutation(line_scores):
    S, V = _inputs()[2:4]
    return line_scores(S, V, torch.eye(5, dtype=F64)[[2, 0, 4, 1, 3]])


def probe_weights(line_weights):
    return line_weights(*_inputs()[2:])


def probe_weights_permutation(line_weights):
    A, V = _inputs()[2:4]
    return line_weights(A, V, torch.eye(5, dtype=F64)[[2, 0, 4, 1, 3]])


def probe_output(line_output):
    return line_output(*_inputs()[2:])


def probe_dtype(line_shuffled):
    X, weights, _, _, P = _inputs()
    return str(line_shuffled(X.float(), P.float(), *(W.float() for W in weights)).dtype)
