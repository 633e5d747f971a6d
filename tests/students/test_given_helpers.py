"""Kernels, the layer of q1_12 and the derivations of q1_13: what tests, notebooks and answers share."""

import math

import pytest
import torch

from course_utils.checking.compare import Wrong
from course_utils.hw1 import kernels
from course_utils.hw1.position_layer import position_layer
from course_utils.hw1.spot_the_error import DERIVATIONS, departs, draw

F64 = torch.float64
ALL = [kernels.gaussian_kernel, kernels.laplace_kernel, kernels.dot_exp_kernel, kernels.lopsided_kernel]


def rand(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


@pytest.mark.parametrize("kernel", ALL)
def test_a_kernel_broadcasts_keeps_the_dtype_and_gives_one_number_for_two_vectors(kernel):
    a, b = rand(5, 1, 3), rand(4, 3, seed=1)
    grid = kernel(a, b)
    assert grid.shape == (5, 4) and grid.dtype == F64 and (grid > 0).all()
    assert kernel(a[2, 0], b[3]).shape == ()
    torch.testing.assert_close(kernel(a[2, 0], b[3]), grid[2, 3])
    assert kernel(a.float(), b.float()).dtype == torch.float32


@pytest.mark.parametrize("kernel", ALL)
def test_a_kernel_is_differentiable_in_both_arguments(kernel):
    assert torch.autograd.gradcheck(kernel, (rand(2, 3).requires_grad_(), rand(2, 3, seed=1).requires_grad_()))


@pytest.mark.parametrize("kernel", ALL)
def test_only_the_lopsided_kernel_tells_query_from_key(kernel):
    a, b = rand(6, 3), rand(6, 3, seed=1)
    symmetric = torch.allclose(kernel(a, b), kernel(b, a))
    assert symmetric == (kernel is not kernels.lopsided_kernel)


def test_the_layer_is_its_formula_written_with_loops():
    n, d, H, A, C, out = 3, 2, 4, 5, 6, 7
    X = rand(n, d)
    w = {
        "Wq": rand(H, d + n, A, seed=1),
        "Wk": rand(H, d + n, A, seed=2),
        "Wv": rand(H, d + n, C, seed=3),
        "Wo": rand(H * C, out, seed=4),
    }
    Z = torch.cat([X, torch.eye(n, dtype=F64)], 1)
    heads = []
    for h in range(H):
        scores = (Z @ w["Wq"][h]) @ (Z @ w["Wk"][h]).T / math.sqrt(A)
        heads.append(torch.softmax(scores, 1) @ (Z @ w["Wv"][h]))
    torch.testing.assert_close(position_layer(X, w), torch.cat(heads, 1) @ w["Wo"])


def test_the_layer_casts_its_weights_to_the_inputs_dtype():
    w = {"Wq": rand(1, 5, 2), "Wk": rand(1, 5, 2), "Wv": rand(1, 5, 2), "Wo": rand(2, 2)}
    assert position_layer(rand(3, 2).float(), w).dtype == torch.float32


@pytest.mark.parametrize(
    "change, words",
    [
        ({"Wo": None}, "no Wo"),
        ({"Wq": rand(1, 4, 2)}, "Z has d + n = 5 columns"),
        ({"Wk": rand(1, 5, 3)}, "must agree"),
        ({"Wv": rand(2, 5, 2)}, "2 heads"),
        ({"Wo": rand(3, 2)}, "H * C = 2 rows"),
    ],
)
def test_weights_that_do_not_fit_are_named(change, words):
    w = {"Wq": rand(1, 5, 2), "Wk": rand(1, 5, 2), "Wv": rand(1, 5, 2), "Wo": rand(2, 2)} | change
    with pytest.raises(Wrong, match=words.replace("*", r"\*").replace("+", r"\+")):
        position_layer(rand(3, 2), {name: value for name, value in w.items() if value is not None})


@pytest.mark.parametrize("name", DERIVATIONS)
def test_the_first_false_line_of_a_derivation_is_the_one_that_departs(name):
    first_false = {"variance": "closed", "copy": "pooled", "longer_key": "wins", "shuffled_tokens": "cancelled",
                   "sensitive": "saturated"}.get(name)
    rng = torch.Generator().manual_seed(1)
    gaps = {line: max(departs(name, line, draw(name, rng)) for _ in range(20)) for line in DERIVATIONS[name]}
    assert next((line for line, gap in gaps.items() if gap > 1e-6), None) == first_false, gaps


def test_the_first_line_of_each_variance_is_what_dice_say():
    mu, sigma = torch.tensor([0.5, -1.0, 1.5], dtype=F64), 0.8
    q = mu + sigma * rand(400_000, 3)
    k = mu + sigma * rand(400_000, 3, seed=1)
    assert DERIVATIONS["variance"]["moments"](mu, sigma) == pytest.approx((q * k).sum(-1).var().item(), rel=0.02)
    scores = (q[:10_000, None] * (mu + sigma * rand(10_000, 20, 3, seed=2))).sum(-1)  # twenty keys for each query
    assert DERIVATIONS["one_query"]["given"](mu, sigma) == pytest.approx(scores.var(-1).mean().item(), rel=0.04)


def test_a_derivation_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no derivation is called 'Variance'"):
        draw("Variance", torch.Generator())
