"""Hidden checks of q1_3: luong_scores."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views

F64 = torch.float64
KINDS = ["dot", "general", "concat", "location"]


def _draw(rng, B=3, S=5, D=4, K=6, dtype=F64):
    """A query [B, D], keys [B, S, D] and for every kind its parameters, all of different sizes."""
    def randn(*shape):
        return torch.randn(*shape, generator=rng, dtype=dtype)

    parameters = {
        "dot": {},
        "general": {"W": randn(D, D)},
        "concat": {"W": randn(K, 2 * D) / math.sqrt(D), "v": randn(K)},
        "location": {"W": randn(S, D)},
    }
    return randn(B, D), randn(B, S, D), parameters


def _one_score(query, key, s, kind, W=None, v=None):
    """The score of one query against the key at position s, number by number."""
    D = len(query)
    if kind == "dot":
        return sum(query[i] * key[i] for i in range(D))
    if kind == "general":
        return sum(query[i] * W[i, j] * key[j] for i in range(D) for j in range(D))
    if kind == "location":
        return sum(W[s, i] * query[i] for i in range(D))
    pair = torch.cat([query, key])
    return sum(v[r] * torch.tanh((W[r] * pair).sum()) for r in range(len(v)))


def _scores(query, keys, kind, W=None, v=None):
    B, S = keys.shape[:2]
    every = [_one_score(query[b], keys[b, s], s, kind, W, v) for b in range(B) for s in range(S)]
    return torch.stack(every).reshape(B, S)


def _checked(luong_scores, query, keys, kind, **parameters):
    return tensor(luong_scores(query, keys, kind, **parameters), f"the {kind} scores", keys.shape[:2], F64)


@pytest.mark.weight(2)
@pytest.mark.parametrize("kind", KINDS)
def test_values(luong_scores, rng, kind):
    """The scores of every row and every key equal the formula, written out number by number."""
    query, keys, parameters = _draw(rng)
    expected = _scores(query, keys, kind, **parameters[kind])
    causes = {
        "Luong's scores have no factor 1 / sqrt(D)": expected / 2,
        "these are the weights; scores come before the softmax": torch.softmax(expected, -1),
    }
    if kind == "general":
        causes["W is on the wrong side; the score is query^T W key, you have key^T W query"] = _scores(
            query, keys, kind, parameters[kind]["W"].T)
    if kind == "concat":
        W, v = parameters[kind]["W"], parameters[kind]["v"]
        key_first = torch.cat([W[:, 4:], W[:, :4]], 1)
        linear = torch.cat([query[:, None].expand_as(keys), keys], -1) @ W.T
        causes |= {
            "the query comes first in [query; key], you have put the key in front":
                _scores(query, keys, kind, key_first, v),
            "the tanh is missing": linear @ v,
            "the tanh comes before the product with v, not after": torch.tanh(linear @ v),
        }
    same_or_because(luong_scores(query, keys, kind, **parameters[kind]), expected, f"the {kind} scores", causes)


def test_axes_of_length_one(luong_scores, rng):
    """The result is [B, S] also when the batch has one row, or there is one key, or one hidden unit."""
    for B, S, D, K in ((1, 5, 4, 3), (3, 1, 4, 1), (1, 1, 2, 3), (2, 3, 1, 4)):
        query, keys, parameters = _draw(rng, B, S, D, K)
        for kind in KINDS:
            got = luong_scores(query, keys, kind, **parameters[kind])
            expected = _scores(query, keys, kind, **parameters[kind])
            same(got, expected, f"the {kind} scores for B={B}, S={S}, D={D}")


def test_float32(luong_scores, rng):
    """float32 inputs give float32 scores, for all four kinds."""
    query, keys, parameters = _draw(rng, dtype=torch.float32)
    for kind in KINDS:
        expected = _scores(query, keys, kind, **parameters[kind])
        same(luong_scores(query, keys, kind, **parameters[kind]), expected, f"the {kind} scores", atol=1e-5)


def test_keys_keep_apart(luong_scores, rng):
    """Another key moves its own score and no other; the location scores do not read the keys at all."""
    query, keys, parameters = _draw(rng)
    other = keys.clone()
    other[1, 2] += torch.randn(4, generator=rng, dtype=F64)
    for kind in KINDS:
        before, after = (_checked(luong_scores, query, k, kind, **parameters[kind]) for k in (keys, other))
        moved = (after - before).abs() > 1e-9
        expected = torch.zeros(3, 5, dtype=torch.bool)
        expected[1, 2] = kind != "location"
        check(torch.equal(moved, expected), f"another key at row 1, position 2 moved the {kind} scores at "
              f"(row, position) {moved.nonzero().tolist()}, expected {expected.nonzero().tolist()}")


def test_rows_keep_apart(luong_scores, rng):
    """Another query moves every score of its own row, and none of another row."""
    query, keys, parameters = _draw(rng)
    other = query.clone()
    other[2] += torch.randn(4, generator=rng, dtype=F64)
    for kind in KINDS:
        before, after = (_checked(luong_scores, q, keys, kind, **parameters[kind]) for q in (query, other))
        moved = (after - before).abs() > 1e-9
        check(moved[2].all(), f"another query in row 2 left some {kind} scores of that row unchanged")
        check(not moved[:2].any(), f"another query in row 2 moved {kind} scores of other rows")


def test_general_is_linear(luong_scores, rng):
    """With W = I the general score is the dot score; twice W gives twice the score."""
    query, keys, parameters = _draw(rng)
    plain = luong_scores(query, keys, "general", W=torch.eye(4, dtype=F64))
    same(plain, (query[:, None] * keys).sum(-1), "the general scores with W = I")
    W = parameters["general"]["W"]
    once = tensor(luong_scores(query, keys, "general", W=W), "the general scores", (3, 5), F64)
    same(luong_scores(query, keys, "general", W=2 * W), 2 * once, "the general scores with 2 W")
    check(once.abs().max() > 1e-6, "the general scores are all zero")


def test_concat_saturates(luong_scores, rng):
    """However large query and keys are, a concat score stays within the sum of |v|: tanh is bounded."""
    query, keys, parameters = _draw(rng)
    W, v = parameters["concat"]["W"], parameters["concat"]["v"]
    got = tensor(luong_scores(1e3 * query, 1e3 * keys, "concat", W=W, v=v), "the scores", (3, 5), F64)
    check((got.abs() <= v.abs().sum() + 1e-9).all(),
          "a concat score is larger than the sum of |v|: is the tanh there, and inside the product with v?")
    same(got, _scores(1e3 * query, 1e3 * keys, "concat", W, v), "the concat scores of large inputs")


def test_sizes_that_coincide(luong_scores, rng):
    """Axes of the same length are not mixed up: as many keys as features, a square W, as many rows as keys."""
    for B, S, D, K in ((3, 4, 4, 8), (4, 4, 4, 4), (2, 8, 4, 8), (5, 5, 3, 6)):
        query, keys, parameters = _draw(rng, B, S, D, K)
        for kind in KINDS:
            got = luong_scores(query, keys, kind, **parameters[kind])
            expected = _scores(query, keys, kind, **parameters[kind])
            same(got, expected, f"the {kind} scores for B={B}, S={S}, D={D}, A={K}")


@pytest.mark.weight(2)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(luong_scores, rng, kind):
    """Gradients reach the query, the keys, W and v, and are right: models learn through these scores."""
    query, keys, parameters = _draw(rng)
    names = ["query", "keys", *parameters[kind]]
    values = [query, keys, *parameters[kind].values()]
    up = torch.randn(3, 5, generator=rng, dtype=F64)
    gradients = []
    for scores in (luong_scores, _scores):
        leaves = [x.clone().requires_grad_() for x in values]
        got = tensor(scores(*leaves[:2], kind, **dict(zip(names[2:], leaves[2:], strict=True))), "the scores", (3, 5))
        check(got.requires_grad, f"no gradient flows through the {kind} scores: the result is cut off from the inputs "
              "(numpy, `.detach()`, `.item()` or a new tensor made from numbers)")
        gradients.append(torch.autograd.grad(got, leaves, up, allow_unused=True))
    for name, leaf, mine, theirs in zip(names, values, *gradients, strict=True):
        check(mine is not None or theirs is None, f"no gradient reaches {name} ({kind} scores): is it detached?")
        right = torch.zeros_like(leaf) if theirs is None else theirs
        same(torch.zeros_like(leaf) if mine is None else mine, right, f"the gradient of {name} with {kind} scores")


@pytest.mark.weight(0.5)
def test_memory_layout(luong_scores, in_box, rng):
    """Keys that are a transposed view, such as states with time in front, give the same scores."""
    query, keys, parameters = _draw(rng)
    for kind in KINDS:
        got = in_box(call_with_views, luong_scores, query, keys, kind, **parameters[kind])
        same(got, _scores(query, keys, kind, **parameters[kind]), f"the {kind} scores of transposed tensors")


@pytest.mark.weight(0.5)
def test_device(luong_scores, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    query, keys, parameters = _draw(rng)
    for kind in KINDS:
        device_ready(watch, luong_scores, call=(query, keys, kind), kwargs=parameters[kind])
