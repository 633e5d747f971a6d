"""Public checks of q1_3: luong_scores."""

import math

import torch

from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.explain.fingerprints import precision

F64 = torch.float64
QUERY = torch.tensor([[1.0, 2.0]], dtype=F64)  # [B=1, D=2]
KEYS = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], dtype=F64)  # [B=1, S=3, D=2]


def test_dot_and_general(luong_scores):
    """Query (1, 2) against three keys: dot gives (1, 2, 3), general gives query^T W key."""
    # keeps: dot, general, no-scale
    same(luong_scores(QUERY, KEYS, "dot"), torch.tensor([[1.0, 2.0, 3.0]], dtype=F64), "the dot scores")
    W = torch.tensor([[0.0, 1.0], [0.0, 3.0]], dtype=F64)  # query^T W = (0, 7)
    got = tensor(luong_scores(QUERY, KEYS, "general", W=W), "the general scores", shape=(1, 3), dtype=F64)
    check(not torch.allclose(got, torch.tensor([[2.0, 6.0, 8.0]], dtype=F64)),
          "W is on the wrong side: the score is query^T W key, you have key^T W query")
    same(got, torch.tensor([[0.0, 7.0, 7.0]], dtype=F64), "the general scores")


def test_concat(luong_scores):
    """The concat score is v . tanh(W [query; key]): the query comes first, W has 2 D columns."""
    # keeps: concat
    W = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 2.0, 0]], dtype=F64)  # [K=3, 2 D=4]
    v = torch.tensor([1.0, 10.0, 100.0], dtype=F64)
    a, b = math.tanh(1.0), math.tanh(2.0)  # W reads query[0], key[1] and 2 key[0]
    expected = torch.tensor([[a + 100 * b, a + 10 * a, a + 10 * a + 100 * b]], dtype=F64)
    same(luong_scores(QUERY, KEYS, "concat", W=W, v=v), expected, "the concat scores")


def test_location(luong_scores, rng):
    """The location score is W query, with one row of W per source position; the keys have no say."""
    # keeps: location
    W = torch.tensor([[1.0, 1.0], [0.0, 1.0], [-1.0, 0.0]], dtype=F64)  # [S=3, D=2]
    expected = torch.tensor([[3.0, 2.0, -1.0]], dtype=F64)
    same(luong_scores(QUERY, KEYS, "location", W=W), expected, "the location scores")
    other = torch.randn(1, 3, 2, generator=rng, dtype=F64)
    same(luong_scores(QUERY, other, "location", W=W), expected, "the location scores with other keys")


def test_batch(luong_scores, rng):
    """Each row of the batch has its own query and its own keys: [B, D] and [B, S, D] give [B, S]."""
    # keeps: batch
    query, keys = torch.randn(4, 3, generator=rng, dtype=F64), torch.randn(4, 5, 3, generator=rng, dtype=F64)
    scores = tensor(luong_scores(query, keys, "dot"), "the scores", shape=(4, 5))
    alone = [luong_scores(query[b : b + 1], keys[b : b + 1], "dot") for b in range(4)]
    alone = [tensor(row, "the scores of a batch of one row", shape=(1, 5)) for row in alone]
    same_as_yours(scores, torch.cat(alone), "the scores of the batch", "of its rows one by one")


def test_batch_of_every_kind(luong_scores, rng):
    """Every kind, against a loop over examples and keys; lengths and widths all differ, and the dtype is kept."""
    # keeps: dot, general, concat, location, batch, dtype
    B, S, D, A = 3, 5, 2, 4
    for dtype in (F64, torch.float32):
        query, keys, W, W_concat, W_location = (torch.randn(*shape, generator=rng, dtype=dtype)
                                                for shape in ((B, D), (B, S, D), (D, D), (A, 2 * D), (S, D)))
        v = torch.randn(A, generator=rng, dtype=dtype)
        expected = {"dot": [], "general": [], "concat": [], "location": []}
        for q, row in zip(query, keys, strict=True):
            expected["dot"].append(torch.stack([q @ k for k in row]))
            expected["general"].append(torch.stack([q @ W @ k for k in row]))
            expected["concat"].append(torch.stack([v @ torch.tanh(W_concat @ torch.cat([q, k])) for k in row]))
            expected["location"].append(W_location @ q)
        given = {"dot": {}, "general": {"W": W}, "concat": {"W": W_concat, "v": v}, "location": {"W": W_location}}
        for kind, rows in expected.items():
            got = tensor(luong_scores(query, keys, kind, **given[kind]), f"the {kind} scores", (B, S), dtype)
            same(got, torch.stack(rows), f"the {kind} scores")


def test_gradients_reach_everything(luong_scores, rng):
    """Query, keys, W and v all learn: the gradient of each is what moving it does to the scores."""
    # keeps: gradients
    shapes = {"dot": (), "general": ((3, 3),), "concat": ((4, 6), (4,)), "location": ((5, 3),)}
    for kind, more in shapes.items():
        leaves = [torch.randn(*shape, generator=rng, dtype=F64).requires_grad_()
                  for shape in ((2, 3), (2, 5, 3), *more)]
        total = luong_scores(*leaves[:2], kind, *leaves[2:]).sum()
        check(total.requires_grad, f"no gradient flows from the {kind} scores")
        total.backward()
        for name, leaf in zip(("query", "keys", "W", "v"), leaves, strict=False):
            if kind == "location" and name == "keys":
                continue
            check(leaf.grad is not None and leaf.grad.abs().max() > 0, f"{name} gets no gradient from the {kind} "
                  "scores: is it detached?")


def _inputs():
    g = torch.Generator().manual_seed(31)
    shapes = {"query": (2, 3), "keys": (2, 5, 3), "W": (3, 3), "W_concat": (4, 6), "v": (4,),
              "W_location": (5, 3)}
    return {name: torch.randn(*shape, generator=g, dtype=F64) for name, shape in shapes.items()}


def probe_dot(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], x["keys"], "dot")


def probe_general(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], x["keys"], "general", W=x["W"])


def probe_concat(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], x["keys"], "concat", W=x["W_concat"], v=x["v"])


def probe_location(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], x["keys"], "location", W=x["W_location"])


def probe_one_row_one_key(luong_scores):
    x = _inputs()
    return luong_scores(x["query"][:1], x["keys"][:1, :1], "dot")


def probe_concat_one_row(luong_scores):
    x = _inputs()
    return luong_scores(x["query"][:1], x["keys"][:1], "concat", W=x["W_concat"], v=x["v"])


def probe_location_other_keys(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], 3 * x["keys"], "location", W=x["W_location"])


def probe_general_identity(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], x["keys"], "general", W=torch.eye(3, dtype=F64))


def probe_dtype(luong_scores):
    x = _inputs()
    return [str(luong_scores(x["query"].to(t), x["keys"].to(t), "dot").dtype) for t in (torch.float32, F64)]


def probe_concat_large(luong_scores):
    x = _inputs()
    return luong_scores(50 * x["query"], 50 * x["keys"], "concat", W=x["W_concat"], v=x["v"])


def probe_gradients(luong_scores):
    g = torch.Generator().manual_seed(32)
    shapes = {"dot": (), "general": ((3, 3),), "concat": ((4, 6), (4,)), "location": ((5, 3),)}
    gradients = []
    for kind, more in shapes.items():
        leaves = [torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()
                  for shape in ((2, 3), (2, 5, 3), *more)]
        luong_scores(*leaves[:2], kind, *leaves[2:]).square().sum().backward()
        gradients += [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    return gradients


def probe_batch_of_other_rows(luong_scores):
    x = _inputs()
    return luong_scores(x["query"] * torch.tensor([[1.0], [3.0]], dtype=F64), x["keys"], "dot")


def probe_precision(luong_scores):
    x = _inputs()
    exact = (x["query"][:, None] * x["keys"]).sum(-1)
    return precision(luong_scores(x["query"], x["keys"], "dot") - exact)


def probe_location_square(luong_scores):
    x = _inputs()
    return luong_scores(x["query"], x["keys"][:, :3], "location", W=x["W_location"][:3])
