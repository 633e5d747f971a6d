"""Public checks of q1_16: column_attention."""

import math

import torch

from course_utils.checking.compare import same, tensor

F64 = torch.float64


def _draw(rng, D=3, N=5, dtype=F64):
    """X [D, N], three matrices [D, D] and three biases [D]."""
    X, *rest = (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((D, N), *[(D, D)] * 3, *[(D,)] * 3))
    return X, *rest


def _expected(X, Oq, Ok, Ov, bq, bk, bv):
    """Query after query: a softmax over the keys' scores, then the weighted sum of the columns of V."""
    columns = list(X.T)
    queries, keys, values = ([O @ x + b for x in columns] for O, b in ((Oq, bq), (Ok, bk), (Ov, bv)))
    outputs = []
    for q in queries:
        weights = torch.stack([k @ q for k in keys]).softmax(0)
        outputs.append(sum(w * v for w, v in zip(weights, values, strict=True)))
    return torch.stack(outputs, -1)


def test_worked_numbers(column_attention):
    """One feature, X = (0, ln 3), bq = 1: the first output is 3/4 ln 3."""
    # keeps: formula, no-scale
    one, zero = torch.ones(1, 1, dtype=F64), torch.zeros(1, dtype=F64)
    X = torch.tensor([[0.0, math.log(3)]], dtype=F64)
    got = tensor(column_attention(X, one, one, one, zero + 1, zero, zero), "the output", shape=(1, 2))
    same(got[0, 0], torch.tensor(0.75 * math.log(3), dtype=F64), "the first output")


def test_values(column_attention, rng):
    """Five tokens of width three, and two of width four, against a loop over queries and keys."""
    # keeps: formula, softmax-axis, biases, any-size
    for D, N in ((3, 5), (4, 2), (2, 2)):
        arguments = _draw(rng, D, N)
        got = tensor(column_attention(*arguments), f"the output at D = {D}, N = {N}", shape=(D, N))
        same(got, _expected(*arguments), f"the output at D = {D}, N = {N}", rtol=1e-6, atol=1e-8)


def test_one_token(column_attention, rng):
    """A single token attends to itself: its output is its value, Ov x + bv."""
    # keeps: any-size
    X, Oq, Ok, Ov, bq, bk, bv = _draw(rng, 3, 1)
    same(column_attention(X, Oq, Ok, Ov, bq, bk, bv), Ov @ X + bv[:, None], "the output of one token")


def test_dtype(column_attention, rng):
    """float32 in, float32 out; float64 in, float64 out."""
    # keeps: dtype
    for dtype in (torch.float32, F64):
        tensor(column_attention(*_draw(rng, dtype=dtype)), "the output", shape=(3, 5), dtype=dtype)


def _inputs(D=3, N=5):
    return _draw(torch.Generator().manual_seed(161), D, N)


def probe_values(column_attention):
    return column_attention(*_inputs())


def probe_square(column_attention):
    return column_attention(*_inputs(4, 4))


def probe_shape(column_attention):
    return list(column_attention(*_inputs()).shape)


def probe_dtype(column_attention):
    return [str(column_attention(*(x.to(dtype) for x in _inputs())).dtype) for dtype in (torch.float32, F64)]


def probe_no_biases(column_attention):
    X, Oq, Ok, Ov, bq, bk, bv = _inputs()
    return column_attention(X, Oq, Ok, Ov, 0 * bq, 0 * bk, 0 * bv)


def probe_query_bias(column_attention):
    X, Oq, Ok, Ov, bq, bk, bv = _inputs()
    return column_attention(X, Oq, Ok, Ov, bq, 0 * bk, 0 * bv)


def probe_key_bias(column_attention):
    X, Oq, Ok, Ov, bq, bk, bv = _inputs()
    return column_attention(X, Oq, Ok, Ov, 0 * bq, 3 * bk, 0 * bv)
