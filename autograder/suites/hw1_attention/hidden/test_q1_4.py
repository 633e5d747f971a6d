"""Hidden checks of q1_4: luong_step."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views

F64 = torch.float64
KINDS = ["dot", "general", "concat", "location"]


def _draw(rng, B=3, S=5, D=4, O=6, K=7, dtype=F64):  # noqa: E741 (O is the width of h_tilde)
    """query [B, D], keys [B, S, D], W_f [O, 2 D], and for every kind its parameters."""
    def randn(*shape):
        return torch.randn(*shape, generator=rng, dtype=dtype)

    parameters = {
        "dot": {},
        "general": {"W": randn(D, D) / math.sqrt(D)},
        "concat": {"W": randn(K, 2 * D) / math.sqrt(D), "v": randn(K)},
        "location": {"W": randn(S, D)},
    }
    return randn(B, D), randn(B, S, D), randn(O, 2 * D) / math.sqrt(2 * D), parameters


def _run(step, query, keys, W_f, *kind, **parameters):
    """(h_tilde, weights) of a step, after a look at the shapes and dtypes."""
    got = step(query, keys, W_f, *kind, **parameters)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "luong_step returns the pair (h_tilde, weights)")
    h_tilde = tensor(got[0], "h_tilde", (len(query), len(W_f)), query.dtype)
    return h_tilde, tensor(got[1], "the weights", keys.shape[:2], query.dtype)


def _step(scores, query, keys, W_f):
    """h_tilde and the weights, row by row, from scores [B, S]."""
    weights = torch.softmax(scores, -1)
    B, S, D = keys.shape
    context = torch.stack([sum(weights[b, s] * keys[b, s] for s in range(S)) for b in range(B)])
    return torch.tanh(query @ W_f[:, :D].T + context @ W_f[:, D:].T), weights, context


def test_shapes(luong_step, rng):
    """h_tilde is [B, O] and the weights are [B, S], also for one row, one key or one output."""
    for B, S, D, width in ((3, 5, 4, 6), (1, 4, 3, 2), (2, 1, 3, 5), (1, 1, 2, 1)):
        query, keys, W_f, parameters = _draw(rng, B, S, D, width)
        for kind in KINDS:
            h_tilde, weights = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
            check(h_tilde.isfinite().all(), "h_tilde is not finite")
            check(weights.isfinite().all(), "the weights are not finite")
            same(weights.sum(-1), torch.ones(B, dtype=F64), f"the sum of each row of the {kind} weights")


@pytest.mark.weight(2)
def test_weights(luong_step, reference, rng):
    """The weights are the softmax of the scores over the keys, for every kind of score."""
    query, keys, W_f, parameters = _draw(rng)
    for kind in KINDS:
        scores = reference.luong_scores(query, keys, kind, **parameters[kind])
        _, weights = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
        same_or_because(weights, torch.softmax(scores, -1), f"the {kind} weights", {
            "your weights sum to 1 over the batch, not over the keys; look at the axis of the softmax":
                torch.softmax(scores, 0),
            "these are the scores, the weights are their softmax": scores,
            "the scores are divided by sqrt(D); Luong's step has no such factor": torch.softmax(scores / 2, -1),
        })


@pytest.mark.weight(2)
@pytest.mark.parametrize("kind", KINDS)
def test_attentional_state(luong_step, reference, rng, kind):
    """h_tilde is tanh(W_f [query; context]), where the context is the weighted sum of the keys."""
    query, keys, W_f, parameters = _draw(rng)
    scores = reference.luong_scores(query, keys, kind, **parameters[kind])
    expected, _, context = _step(scores, query, keys, W_f)
    got, _ = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
    same_or_because(got, expected, f"h_tilde with {kind} scores", {
        "the query comes first in [query; context], you have put the context in front":
            torch.tanh(torch.cat([context, query], -1) @ W_f.T),
        "the tanh is missing": torch.cat([query, context], -1) @ W_f.T,
        "the context is the weighted sum of the keys, you divide it by their number once more":
            _step(scores, query, keys / 5, W_f)[0],
        "the context is the plain mean of the keys, the weights are not used":
            _step(0 * scores, query, keys, W_f)[0],
        "the query is missing": torch.tanh(context @ W_f[:, 4:].T),
    })


def test_default_kind(luong_step, rng):
    """Without a kind the scores are plain dot products."""
    query, keys, W_f, _ = _draw(rng)
    expected, weights, _ = _step((query[:, None] * keys).sum(-1), query, keys, W_f)
    got = _run(luong_step, query, keys, W_f)
    same(got[1], weights, "the weights")
    same(got[0], expected, "h_tilde")


def test_float32(luong_step, reference, rng):
    """float32 inputs give float32 results, for every kind of score."""
    query, keys, W_f, parameters = _draw(rng, dtype=torch.float32)
    for kind in KINDS:
        expected = _step(reference.luong_scores(query, keys, kind, **parameters[kind]), query, keys, W_f)
        got = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
        same(got[0], expected[0], f"h_tilde with {kind} scores", atol=1e-5)
        same(got[1], expected[1], f"the {kind} weights", atol=1e-5)


def test_order_of_the_keys(luong_step, rng):
    """Reordering the keys reorders the weights and leaves h_tilde as it is (location scores apart)."""
    query, keys, W_f, parameters = _draw(rng)
    order = torch.tensor([3, 0, 4, 2, 1])
    for kind in KINDS[:3]:
        h_tilde, weights = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
        again, shuffled = _run(luong_step, query, keys[:, order], W_f, kind, **parameters[kind])
        check((weights - weights[:, order]).abs().max() > 1e-6, f"all {kind} weights of a row are equal")
        same(shuffled, weights[:, order], f"the {kind} weights of the reordered keys")
        same(again, h_tilde, "h_tilde after reordering the keys")


def test_rows_of_the_batch(luong_step, rng):
    """Another key in one row moves the results of that row, and of no other."""
    query, keys, W_f, parameters = _draw(rng)
    other = keys.clone()
    other[1, 3] += 1.0
    for kind in KINDS:
        before, after = (_run(luong_step, query, k, W_f, kind, **parameters[kind]) for k in (keys, other))
        for name, a, b in zip(("h_tilde", "the weights"), before, after, strict=True):
            moved = (a - b).abs().amax(-1) > 1e-9
            check(not moved[0] and not moved[2], f"a key of row 1 moves {name} of other rows")
            check(moved[1] or (kind == "location" and name == "the weights"),
                  f"a key of row 1 does not move {name} of its own row ({kind} scores)")


@pytest.mark.weight(2)
def test_gradients(luong_step, reference, rng):
    """Gradients reach the query, every key, W_f, W and v: the model of q1_5 learns through this step."""
    for kind in KINDS:
        query, keys, W_f, parameters = _draw(rng)
        names = ["query", "keys", "W_f", *parameters[kind]]
        values = [query, keys, W_f, *parameters[kind].values()]
        up = torch.randn(3, 6, generator=rng, dtype=F64), torch.randn(3, 5, generator=rng, dtype=F64)
        gradients = []
        for step in (luong_step, reference.luong_step):
            leaves = [x.clone().requires_grad_() for x in values]
            outputs = _run(step, *leaves[:3], kind, **dict(zip(names[3:], leaves[3:], strict=True)))
            check(all(x.requires_grad for x in outputs), "no gradient flows: a result is cut off from the "
                  "inputs (numpy, `.detach()`, `.item()` or a new tensor made from numbers)")
            gradients.append(torch.autograd.grad(outputs, leaves, up, allow_unused=True))
        for name, mine, theirs in zip(names, *gradients, strict=True):
            check(mine is not None, f"no gradient reaches {name} ({kind} scores)")
            same(mine, theirs, f"the gradient of {name} with {kind} scores")


@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=["float32", "float64"])
def test_large_scores(luong_step, reference, rng, dtype):
    """Scores of 1000 and more give weights all the same, neither NaN nor infinity: long vectors have such scores."""
    query, keys, W_f, parameters = _draw(rng, dtype=dtype)
    query, W_f = query.sign() * (40 + 10 * query.abs()), W_f / 40
    keys = keys.sign() * (40 + 10 * keys.abs())
    parameters["concat"]["v"] = 1e3 * parameters["concat"]["v"]
    parameters["location"]["W"] = 20 * parameters["location"]["W"]
    for kind in KINDS:
        scores = reference.luong_scores(query, keys, kind, **parameters[kind])
        got = luong_step(query, keys, W_f, kind, **parameters[kind])
        check(isinstance(got, (tuple, list)) and len(got) == 2, "luong_step returns the pair (h_tilde, weights)")
        h_tilde, weights = tensor(got[0], "h_tilde", (3, 6), dtype), tensor(got[1], "the weights", (3, 5), dtype)
        largest = scores.abs().max().item()
        check(weights.isfinite().all() and h_tilde.isfinite().all(), f"{kind} scores up to {largest:.0f} give results "
              "that are not finite: the exponential of a large score is infinity. Use your softargmax")
        if dtype == F64:  # float32 has too few digits left for scores of this size
            expected = _step(scores, query, keys, W_f)
            same(weights, expected[1], f"the {kind} weights for large scores", rtol=0, atol=1e-6)
            same(h_tilde, expected[0], f"h_tilde with large {kind} scores", rtol=0, atol=1e-5)


def test_key_of_zeros(luong_step, reference, rng):
    """A key of zeros is a key like any other: there is no mask here."""
    query, keys, W_f, parameters = _draw(rng)
    keys[0, 1], keys[1], query[2] = 0.0, 0.0, 0.0
    for kind in KINDS:
        expected = _step(reference.luong_scores(query, keys, kind, **parameters[kind]), query, keys, W_f)
        got = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
        same(got[1], expected[1], f"the {kind} weights with zeros among keys and queries")
        same(got[0], expected[0], f"h_tilde with {kind} scores and zeros among keys and queries")


def test_sizes_that_coincide(luong_step, reference, rng):
    """Sizes are not mixed up: a square W_f, as many keys as features or rows, wide vectors."""
    for B, S, D, width, K in ((3, 5, 4, 8, 7), (3, 4, 4, 4, 4), (4, 4, 4, 8, 8), (5, 5, 3, 6, 6), (2, 3, 70, 5, 9)):
        query, keys, W_f, parameters = _draw(rng, B, S, D, width, K)
        for kind in KINDS:
            scores = reference.luong_scores(query, keys, kind, **parameters[kind])
            expected = _step(scores, query, keys, W_f)
            got = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
            about = f"for B={B}, S={S}, D={D} and W_f of shape {list(W_f.shape)}"
            same(got[1], expected[1], f"the {kind} weights {about}")
            same(got[0], expected[0], f"h_tilde with {kind} scores {about}")


@pytest.mark.weight(0.5)
def test_memory_layout(luong_step, in_box, rng):
    """Keys that are a transposed view, such as states with time in front, give the same results."""
    query, keys, W_f, _ = _draw(rng)
    expected = _step((query[:, None] * keys).sum(-1), query, keys, W_f)
    got = in_box(call_with_views, luong_step, query, keys, W_f)
    same(got[0], expected[0], "h_tilde of transposed tensors")
    same(got[1], expected[1], "the weights of transposed tensors")


@pytest.mark.weight(0.5)
def test_device(luong_step, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    query, keys, W_f, parameters = _draw(rng)
    for kind in KINDS:
        device_ready(watch, luong_step, call=(query, keys, W_f, kind), kwargs=parameters[kind])


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_scores(luong_step, luong_scores, rng):
    """Together with your own q1_1 and q1_3: the weights are the softmax of your own scores."""
    query, keys, W_f, parameters = _draw(rng)
    for kind in KINDS:
        scores = tensor(luong_scores(query, keys, kind, **parameters[kind]), f"your own {kind} scores", (3, 5))
        expected = _step(scores, query, keys, W_f)
        got = _run(luong_step, query, keys, W_f, kind, **parameters[kind])
        same(got[1], expected[1], f"the {kind} weights, from your own scores")
        same(got[0], expected[0], f"h_tilde with your own {kind} scores")
