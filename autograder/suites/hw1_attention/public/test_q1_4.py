"""Public checks of q1_4: luong_step."""

import math

import torch

from course_utils.checking.compare import check, same, tensor
from course_utils.explain.fingerprints import precision

F64 = torch.float64


def _step(luong_step, *args, **kwargs):
    got = luong_step(*args, **kwargs)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "luong_step returns the pair (h_tilde, weights)")
    return got


def test_worked_numbers(luong_step):
    """Scores 0 and ln 3 give weights 1/4 and 3/4; h_tilde is tanh(W_f [query; context])."""
    # keeps: formula, order, no-scale
    query = torch.tensor([[1.0, 0.0]], dtype=F64)
    keys = torch.tensor([[[0.0, 4.0], [math.log(3.0), 0.0]]], dtype=F64)
    W_f = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0]], dtype=F64)  # [O=3, 2 D=4]
    h_tilde, weights = _step(luong_step, query, keys, W_f)
    same(weights, torch.tensor([[0.25, 0.75]], dtype=F64), "the weights")
    context = [0.75 * math.log(3.0), 1.0]  # a quarter of key 0 and three quarters of key 1
    expected = torch.tensor([[math.tanh(1.0), math.tanh(context[1]), math.tanh(context[0])]], dtype=F64)
    same(h_tilde, expected, "h_tilde")


def test_shapes_and_weights(luong_step, rng):
    """h_tilde is [B, E] and within (-1, 1); the weights are [B, S] and each row sums to 1."""
    # keeps: shapes
    query, keys = torch.randn(3, 4, generator=rng, dtype=F64), torch.randn(3, 5, 4, generator=rng, dtype=F64)
    W, W_f = torch.randn(4, 4, generator=rng, dtype=F64), torch.randn(6, 8, generator=rng, dtype=F64)
    for kind, extra in (("dot", {}), ("general", {"W": W})):
        h_tilde, weights = _step(luong_step, query, keys, W_f, kind, **extra)
        h_tilde = tensor(h_tilde, "h_tilde", shape=(3, 6), dtype=F64)
        check((h_tilde.abs() <= 1).all(), "h_tilde is a tanh: no entry can be above 1")
        weights = tensor(weights, "the weights", shape=(3, 5), dtype=F64)
        same(weights.sum(-1), torch.ones(3, dtype=F64), f"the sum of each row of the {kind} weights")


def test_every_kind(luong_step, rng):
    """Every kind of score, against a loop over the examples; W_f may be square too."""
    # keeps: formula, kinds, order, batch
    query, keys = torch.randn(3, 2, generator=rng, dtype=F64), torch.randn(3, 5, 2, generator=rng, dtype=F64)
    W, W_concat, v = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((2, 2), (7, 4), (7,)))
    W_location, W_f = torch.randn(5, 2, generator=rng, dtype=F64), torch.randn(4, 4, generator=rng, dtype=F64)
    kinds = {
        "dot": ({}, lambda q, k: k @ q), "general": ({"W": W}, lambda q, k: k @ (W.T @ q)),
        "concat": ({"W": W_concat, "v": v},
                   lambda q, k: torch.stack([v @ torch.tanh(W_concat @ torch.cat([q, one])) for one in k])),
        "location": ({"W": W_location}, lambda q, k: W_location @ q),
    }
    for kind, (given, score) in kinds.items():
        h_tilde, weights = _step(luong_step, query, keys, W_f, kind, **given)
        for b in range(3):
            expected = score(query[b], keys[b]).softmax(-1)
            same(weights[b], expected, f"the {kind} weights of example {b}")
            mixed = torch.tanh(W_f @ torch.cat([query[b], expected @ keys[b]]))
            same(h_tilde[b], mixed, f"h_tilde of example {b} with {kind} scores")


def test_scores_of_thousands(luong_step):
    """Scores of some thousands give finite weights, as in softargmax."""
    # keeps: large
    query, keys = torch.tensor([[60.0, 0.0]]), torch.tensor([[[60.0, 1.0], [-60.0, 1.0]]])
    h_tilde, weights = _step(luong_step, query, keys, torch.full((2, 4), 0.01))
    check(torch.as_tensor(weights).isfinite().all(), "the weights are not finite: the exponentials overflow")
    same(weights, torch.tensor([[1.0, 0.0]]), "the weights of the scores 3600 and -3600")
    tensor(h_tilde, "h_tilde", shape=(1, 2), dtype=torch.float32)


def test_what_learns(luong_step, rng):
    """Query, keys and W_f all get a gradient, from the state and from the weights."""
    # keeps: gradients
    leaves = [torch.randn(*shape, generator=rng, dtype=F64).requires_grad_() for shape in ((2, 3), (2, 4, 3), (5, 6))]
    h_tilde, weights = _step(luong_step, *leaves)
    check(h_tilde.requires_grad and weights.requires_grad, "no gradient flows from the results: is something detached?")
    (h_tilde.sum() + weights[:, 0].sum()).backward()
    expected = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    query, keys, W_f = expected
    a = torch.einsum("bd,bsd->bs", query, keys).softmax(-1)
    mixed = torch.cat([query, torch.einsum("bs,bsd->bd", a, keys)], -1)
    (torch.tanh(mixed @ W_f.T).sum() + a[:, 0].sum()).backward()
    for name, got, right in zip(("query", "keys", "W_f"), leaves, expected, strict=True):
        check(got.grad is not None, f"{name} gets no gradient: is it detached?")
        same(got.grad, right.grad, f"the gradient of {name}", rtol=1e-5, atol=1e-8)


def _inputs():
    g = torch.Generator().manual_seed(41)
    shapes = {"query": (2, 3), "keys": (2, 5, 3), "W_f": (4, 6), "W": (3, 3), "W_concat": (7, 6), "v": (7,),
              "W_location": (5, 3)}
    return {name: torch.randn(*shape, generator=g, dtype=F64) for name, shape in shapes.items()}


def probe_dot(luong_step):
    x = _inputs()
    return luong_step(x["query"], x["keys"], x["W_f"])


def probe_weights(luong_step):
    x = _inputs()
    return luong_step(x["query"], x["keys"], x["W_f"])[1]


def probe_state(luong_step):
    x = _inputs()
    return luong_step(x["query"], x["keys"], x["W_f"])[0]


def probe_general(luong_step):
    x = _inputs()
    return luong_step(x["query"], x["keys"], x["W_f"], "general", W=x["W"])


def probe_concat(luong_step):
    x = _inputs()
    return luong_step(x["query"], x["keys"], x["W_f"], "concat", W=x["W_concat"], v=x["v"])


def probe_location(luong_step):
    x = _inputs()
    return luong_step(x["query"], x["keys"], x["W_f"], kind="location", W=x["W_location"])


def probe_context(luong_step):
    x = _inputs()
    reads_context = torch.cat([torch.zeros(3, 3, dtype=F64), torch.eye(3, dtype=F64)], 1) / 10
    return luong_step(x["query"], x["keys"], reads_context)[0]


def probe_query(luong_step):
    x = _inputs()
    reads_query = torch.cat([torch.eye(3, dtype=F64), torch.zeros(3, 3, dtype=F64)], 1) / 10
    return luong_step(x["query"], x["keys"], reads_query)[0]


def probe_one_row_one_key(luong_step):
    x = _inputs()
    return luong_step(x["query"][:1], x["keys"][:1, :1], x["W_f"])


def probe_dtype(luong_step):
    x = {name: value.float() for name, value in _inputs().items()}
    return [str(part.dtype) for part in luong_step(x["query"], x["keys"], x["W_f"])]


def probe_gradient(luong_step):
    x = _inputs()
    leaves = [x[name].requires_grad_() for name in ("query", "keys", "W_f")]
    h_tilde, _ = luong_step(*leaves)
    (h_tilde * torch.linspace(-1, 1, 8, dtype=F64).reshape(2, 4)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_square_matrix(luong_step):
    x = _inputs()
    square = torch.arange(36, dtype=F64).reshape(6, 6).sin()
    return luong_step(x["query"], x["keys"], square)[0]


def probe_large_scores(luong_step):
    x = torch.linspace(-40, 40, 24, dtype=torch.float64).reshape(2, 3, 4)
    return luong_step(x[:, 1] * 30, x, torch.full((2, 8), 0.01, dtype=torch.float64))[1]


def probe_precision(luong_step):
    x = _inputs()
    return precision(luong_step(x["query"], x["keys"], x["W_f"])[1].sum(-1) - 1)
