"""Hidden checks of q1_16: column_attention."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import same, tensor

F64 = torch.float64
CLOSE = {"rtol": 1e-6, "atol": 1e-8}


def _draw(rng, D=3, N=5, dtype=F64):
    X, *matrices = (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((D, N), (D, D), (D, D), (D, D)))
    biases = [0.5 * torch.randn(D, generator=rng, dtype=dtype) for _ in range(3)]
    return X, *(O / math.sqrt(D) for O in matrices), *biases


def _expected(X, Oq, Ok, Ov, bq, bk, bv):
    """Column by column."""
    queries, keys, values = ((O @ X + b[:, None]).T for O, b in ((Oq, bq), (Ok, bk), (Ov, bv)))  # [N, D]
    return torch.stack([(keys @ q).softmax(0) @ values for q in queries], -1)


def _causes(X, Oq, Ok, Ov, bq, bk, bv):
    Q, K, V = (O @ X + b[:, None] for O, b in ((Oq, bq), (Ok, bk), (Ov, bv)))
    bare = [O @ X for O in (Oq, Ok, Ov)]
    scores = K.T @ Q
    return {
        "the softmax runs over the queries: here each column belongs to a query": V @ scores.softmax(1),
        "the scores are Q^T K, whose columns belong to keys": V @ (Q.T @ K).softmax(0),
        "there is a scale 1 / sqrt(D), and this formula has none": V @ (scores / math.sqrt(len(X))).softmax(0),
        "the biases are missing": bare[2] @ (bare[1].T @ bare[0]).softmax(0),
        "the bias of the queries is missing": V @ (K.T @ bare[0]).softmax(0),
        "the bias of the values is missing": bare[2] @ scores.softmax(0),
        "the matrices are transposed":
            (Ov.T @ X + bv[:, None]) @ ((Ok.T @ X + bk[:, None]).T @ (Oq.T @ X + bq[:, None])).softmax(0),
        "there is no softmax": V @ scores,
    }


@pytest.mark.weight(3)
def test_values_of_many_sizes(column_attention, rng):
    """The output is V softmax(K^T Q), the softmax down each column, for several widths and numbers of tokens."""
    for D, N in ((3, 5), (5, 3), (1, 4), (4, 1), (4, 4), (2, 9)):
        arguments = _draw(rng, D, N)
        got = tensor(column_attention(*arguments), f"the output at D = {D}, N = {N}", (D, N), F64)
        same_or_because(got, _expected(*arguments), f"the output at D = {D}, N = {N}", _causes(*arguments), **CLOSE)


@pytest.mark.weight(2)
def test_each_bias_by_itself(column_attention, rng):
    """Each of the three biases does what it should when the others are 0."""
    X, Oq, Ok, Ov, *biases = _draw(rng)
    for i, name in enumerate(("bq", "bk", "bv")):
        only = [2 * b if i == n else 0 * b for n, b in enumerate(biases)]
        same(column_attention(X, Oq, Ok, Ov, *only), _expected(X, Oq, Ok, Ov, *only), f"the output with {name} alone",
             **CLOSE)


def test_no_scale(column_attention, rng):
    """Scores are not scaled: with wide tokens the weights are as sharp as the formula says."""
    arguments = _draw(rng, 16, 4)
    same_or_because(column_attention(*arguments), _expected(*arguments), "the output at D = 16", _causes(*arguments),
                    **CLOSE)


def test_shuffled_columns(column_attention, rng):
    """Shuffle the columns of X, and the columns of the output are shuffled in the same way."""
    X, *rest = _draw(rng)
    order = [3, 0, 4, 2, 1]
    same(column_attention(X[:, order], *rest), column_attention(X, *rest)[:, order], "the output for shuffled tokens",
         **CLOSE)
    same(column_attention(X, *rest), _expected(X, *rest), "the output", **CLOSE)


def test_float32_values(column_attention, rng):
    """float32 inputs give float32 outputs of the right value."""
    arguments = _draw(rng, dtype=torch.float32)
    same(column_attention(*arguments), _expected(*arguments), "the output", rtol=1e-4, atol=1e-5)
