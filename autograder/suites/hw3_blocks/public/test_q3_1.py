"""Public checks of q3_1: layer_norm."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.explain.fingerprints import precision
from course_utils.instruments.calls import call_with_views

F64 = torch.float64


def test_worked_numbers(layer_norm):
    """The row (1, 3, 8) has mean 4 and variance 26 / 3; gamma and beta act entry by entry; eps is inside the root."""
    # keeps: biased, eps-inside
    x, gamma, beta = (torch.tensor(v, dtype=F64) for v in ([[1.0, 3.0, 8.0]], [1.0, 2.0, -1.0], [0.0, 10.0, 0.5]))
    root = math.sqrt(26 / 3)
    got = tensor(layer_norm(x, gamma, beta, eps=0.0), "the result", (1, 3), F64)
    unbiased = torch.tensor([[-3 / math.sqrt(13), 10 - 2 / math.sqrt(13), 0.5 - 4 / math.sqrt(13)]], dtype=F64)
    check(not torch.allclose(got, unbiased), "you divide the sum of squares by D - 1 (the unbiased variance, torch's "
          "default): here it is divided by D")
    same(got, torch.tensor([[-3 / root, 10 - 2 / root, 0.5 - 4 / root]], dtype=F64), "the result with eps = 0")
    expected = torch.tensor([[-1.0, 10 - 2 / 3, 0.5 - 4 / 3]], dtype=F64)  # 26 / 3 + 1 / 3 = 9, and its root is 3
    same(layer_norm(x, gamma, beta, eps=1 / 3), expected, "the result with eps = 1/3 (eps is added inside the root)")


def test_each_row_by_itself(layer_norm, rng):
    """With gamma = 1 and beta = 0 every row has mean 0 and variance 1, however many axes stand before it."""
    # keeps: any-axes, last-axis-only
    for lead in ((4,), (2, 3), (2, 3, 4)):
        x = 3 * torch.randn(*lead, 6, generator=rng, dtype=F64) + 5
        y = tensor(layer_norm(x, torch.ones(6, dtype=F64), torch.zeros(6, dtype=F64), eps=0.0), "the result", x.shape)
        same(y.mean(-1), torch.zeros(lead, dtype=F64), "the mean of the rows", atol=1e-9)
        same(y.square().mean(-1), torch.ones(lead, dtype=F64), "the mean square of the rows")


def test_constant_row(layer_norm):
    """A constant row has variance 0; eps keeps the root from being 0, and beta comes out."""
    # keeps: constant-token
    x, beta = torch.tensor([[2.0, 2.0, 2.0], [0.0, 1.0, 2.0]], dtype=F64), torch.tensor([0.1, -0.2, 0.3], dtype=F64)
    y = tensor(layer_norm(x, torch.ones(3, dtype=F64), beta), "the result", (2, 3), F64)
    check(y.isfinite().all(), "a constant row gives NaN: eps belongs inside the root")
    same(y[0], beta, "the result of a constant row")


def test_no_axis_in_front(layer_norm, rng):
    """A single token [D], and one that is a transposed view, are normed like any other; the input is not changed."""
    # keeps: any-axes, last-axis-only
    x, gamma, beta = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((6, 4), (6,), (6,)))
    before = x.clone()
    expected = torch.nn.functional.layer_norm(x.T, (6,), gamma, beta)
    same(layer_norm(x.T, gamma, beta), expected, "the result for a transposed x")
    same(layer_norm(x[:, 1], gamma, beta), expected[1], "the result for one token [D]")
    check(torch.equal(x, before), "x has been changed in place")
    x = torch.randn(2, 3, 6, generator=rng, dtype=F64)
    same(run_beside(call_with_views, layer_norm, x, gamma, beta), torch.nn.functional.layer_norm(x, (6,), gamma, beta),
         "the result for an x whose axes lie the other way round in memory")


def test_dtypes(layer_norm, rng):
    """The result has the dtype of x, and far from 0 float32 keeps its digits: the mean goes first."""
    # keeps: dtype, mean-first
    x, gamma, beta = (torch.randn(*shape, generator=rng) for shape in ((3, 8), (8,), (8,)))
    for dtype in (torch.float32, torch.bfloat16):
        tensor(layer_norm(x.to(dtype), gamma.to(dtype), beta.to(dtype)), f"the result for {dtype}", (3, 8), dtype)
    far = x + 3000
    exact = torch.nn.functional.layer_norm(far.to(F64), (8,), gamma.to(F64), beta.to(F64))
    same(layer_norm(far, gamma, beta), exact, "the result for features near 3000 in float32 (take the mean away, "
         "then square)",
         rtol=0.02, atol=0.02, dtype=False)


def test_gradients_here(layer_norm, rng):
    """Gradients reach x, gamma and beta, through the mean and the variance too; a constant token's are finite."""
    # keeps: gradients
    values = [torch.randn(*shape, generator=rng, dtype=F64) for shape in ((3, 5), (5,), (5,))]
    values[0][1] = 2.0
    mine, theirs = ([v.clone().requires_grad_() for v in values] for _ in range(2))
    up = torch.randn(3, 5, generator=rng, dtype=F64)
    got = layer_norm(*mine)
    check(got.requires_grad, "no gradient flows from the result to the inputs: it is cut off from them")
    gradients = torch.autograd.grad(got, mine, up, allow_unused=True)
    expected = torch.autograd.grad(torch.nn.functional.layer_norm(theirs[0], (5,), *theirs[1:]), theirs, up)
    for name, a, b in zip(("x", "gamma", "beta"), gradients, expected, strict=True):
        check(a is not None and a.isfinite().all(), f"no finite gradient reaches {name}")
        same(a, b, f"the gradient by {name}", rtol=1e-6, atol=1e-7)


def _inputs(*lead, D=5):
    g = torch.Generator().manual_seed(31)
    return [torch.randn(*shape, generator=g, dtype=F64) for shape in ((*lead, D), (D,), (D,))]


def probe_plain(layer_norm):
    return layer_norm(*_inputs(4))


def probe_sequence(layer_norm):
    return layer_norm(*_inputs(2, 3))


def probe_square(layer_norm):
    return layer_norm(*_inputs(5))


def probe_four_axes(layer_norm):
    return layer_norm(*_inputs(2, 3, 4))


def probe_vector(layer_norm):
    return layer_norm(*_inputs())


def probe_no_eps(layer_norm):
    return layer_norm(*_inputs(4), eps=0.0)


def probe_large_eps(layer_norm):
    return layer_norm(*_inputs(4), 0.7)


def probe_small_entries(layer_norm):
    x, gamma, beta = _inputs(4)
    return layer_norm(x / 1000, gamma, beta)  # the default eps counts here


def probe_offset(layer_norm):
    x, gamma, beta = _inputs(4)
    return layer_norm(x + 20, gamma, beta)


def probe_constant_row(layer_norm):
    x, gamma, beta = _inputs(4)
    x[1] = 3.0
    return layer_norm(x, gamma, beta)


def probe_no_affine(layer_norm):
    x, gamma, beta = _inputs(4)
    return layer_norm(x, torch.ones_like(gamma), torch.zeros_like(beta))


def probe_dtype(layer_norm):
    return [str(layer_norm(*(v.to(dtype) for v in _inputs(4))).dtype) for dtype in (torch.float32, F64)]


def probe_precision(layer_norm):
    x, gamma, beta = _inputs(4)
    return precision(layer_norm(x, torch.ones_like(gamma), 0 * beta).mean(-1))


def probe_gradient(layer_norm):
    leaves = [v.requires_grad_() for v in _inputs(2, 3)]
    y = layer_norm(*leaves)
    (y * torch.linspace(-1, 1, y.numel(), dtype=F64).reshape(y.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_input_unchanged(layer_norm):
    x, gamma, beta = _inputs(4)
    layer_norm(x, gamma, beta)
    return [x, gamma, beta]


def probe_far_from_zero(layer_norm):
    x, gamma, beta = _inputs(4)
    x, one = (x + 3000).float(), torch.ones(5)
    return bool((layer_norm(x, one, 0 * one).square().mean(-1) - 1).abs().max() < 0.01)


def probe_views(layer_norm):
    return run_beside(call_with_views, layer_norm, *_inputs(2, 3))


def probe_half_precision(layer_norm):
    return str(layer_norm(*(v.to(torch.bfloat16) for v in _inputs(4))).dtype)


def probe_gradient_at_constant_row(layer_norm):
    leaves = [v.requires_grad_() for v in _inputs(3)]
    with torch.no_grad():
        leaves[0][1] = 3.0
    layer_norm(*leaves)[:, :2].sum().backward()
    return leaves[0].grad
