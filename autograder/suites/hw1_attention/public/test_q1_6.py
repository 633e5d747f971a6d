"""Public checks of q1_6: kernel_regression and attention_kernel."""

import math

import torch

from course_utils.checking.compare import check, number, same, tensor
from course_utils.explain.fingerprints import precision
from course_utils.hw1.kernels import dot_exp_kernel, gaussian_kernel, laplace_kernel, lopsided_kernel

F64 = torch.float64


def test_worked_numbers(kernel_regression):
    """At x = 0, points at 0 and 1 have Gaussian weights in the ratio 1 to exp(-1/2)."""
    # keeps: regression
    x, xs = torch.zeros(1, 1, dtype=F64), torch.tensor([[0.0], [1.0]], dtype=F64)
    ys = torch.tensor([[10.0, 0.0], [0.0, 10.0]], dtype=F64)
    b = math.exp(-0.5)
    expected = torch.tensor([[10 / (1 + b), 10 * b / (1 + b)]], dtype=F64)  # (6.22, 3.78)
    same(kernel_regression(x, xs, ys, gaussian_kernel), expected, "the estimate")


def test_constant_ys(kernel_regression, rng):
    """If every y is the same, that is the estimate everywhere: the weights sum to 1."""
    # keeps: regression
    x, xs = torch.randn(3, 2, generator=rng, dtype=F64), torch.randn(6, 2, generator=rng, dtype=F64)
    ys = torch.tensor([2.0, -1.0, 0.5, 7.0], dtype=F64).expand(6, 4)
    same(kernel_regression(x, xs, ys, laplace_kernel), ys[:3], "the estimate (are the weights normalised?)")


def test_query_first(kernel_regression):
    """The kernel is called with the query first: kernel(x, xs). This one is not symmetric."""
    # keeps: query-first
    x, xs = torch.zeros(1, 1, dtype=F64), torch.tensor([[-1.0], [1.0]], dtype=F64)
    ys = torch.tensor([[1.0], [0.0]], dtype=F64)
    got = tensor(kernel_regression(x, xs, ys, lopsided_kernel), "the estimate", shape=(1, 1)).item()
    check(got > 0.5 - 1e-6, "this kernel prefers points below the query, your estimate those above: the query comes "
          "first")
    check(got > 0.5 + 1e-6, "this kernel prefers points below the query, your estimate does not: only kernel(query, "
          "point) counts, not the two orders together")
    same(got, 1 / (1 + math.exp(-2.0)), "the estimate")


def test_attention_kernel(attention_kernel):
    """attention_kernel(d) on two vectors gives one number, and grows with their dot product over sqrt(d)."""
    # keeps: attention-kernel, one-number
    kernel = attention_kernel(4)
    q = torch.tensor([1.0, 2.0, 0.0, -1.0], dtype=F64)
    near, far = torch.tensor([2.0, 1.0, 0.0, 0.0], dtype=F64), torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=F64)
    high, low = (number(kernel(q, k), "the kernel of two vectors") for k in (near, far))
    check(high > 0 and low > 0, f"kernels are positive, yours gives {high:.4g} and {low:.4g}")
    same(high / low, math.exp(4 / 2), "the ratio of two kernel values with q . k = 4 and 0")


def test_any_shape(kernel_regression, rng):
    """T, S, D and Dv may all differ, the dtype is kept: against two loops."""
    # keeps: regression, shapes, query-first
    for dtype in (F64, torch.float32):
        x, xs, ys = (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((3, 2), (5, 2), (5, 4)))
        rows = []
        for a in x:
            K = torch.stack([lopsided_kernel(a, b) for b in xs])
            rows.append((K[:, None] * ys).sum(0) / K.sum())
        got = tensor(kernel_regression(x, xs, ys, lopsided_kernel), "the estimate", shape=(3, 4), dtype=dtype)
        same(got, torch.stack(rows), "the estimate")
        if dtype == F64:
            same(got, torch.stack(rows), "the estimate, compared to eleven digits,", rtol=1e-11, atol=1e-12)
    x, xs, ys = x[:1], xs[:1], ys[:1]
    same(kernel_regression(x, xs, ys, gaussian_kernel), ys, "the estimate from a single point")


def test_it_is_attention(kernel_regression, attention_kernel, rng):
    """With attention_kernel(d) the regression is attention: softmax(x . xs / sqrt(d)) ys."""
    # keeps: attention-kernel, broadcasts
    x, xs, ys = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((4, 9), (6, 9), (6, 2)))
    expected = torch.softmax(x @ xs.T / 3, -1) @ ys
    same(kernel_regression(x, xs, ys, attention_kernel(9)), expected, "the estimate", rtol=1e-6, atol=1e-8)


def test_kernel_normalises_nothing(attention_kernel, rng):
    """The kernel of a pair does not depend on the other pairs, and broadcasts over leading axes."""
    # keeps: broadcasts, one-number, no-normalising
    kernel = attention_kernel(3)
    a, b = torch.randn(2, 1, 3, generator=rng, dtype=F64), torch.randn(4, 3, generator=rng, dtype=F64)
    grid = tensor(kernel(a, b), "the kernel of [2, 1, 3] and [4, 3]", shape=(2, 4))
    alone = torch.stack([torch.stack([torch.as_tensor(kernel(u, w)) for w in b]) for u in a[:, 0]])
    same(grid, alone.to(F64), "the kernel of many pairs, against one pair at a time", rtol=1e-6)


def test_what_learns(kernel_regression, rng):
    """Points, values and queries all get the gradient of the formula."""
    # keeps: gradients
    leaves = [torch.randn(*shape, generator=rng, dtype=F64).requires_grad_() for shape in ((2, 3), (4, 3), (4, 2))]
    kernel_regression(*leaves, gaussian_kernel).square().sum().backward()
    others = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    K = gaussian_kernel(others[0][:, None], others[1][None])
    (K @ others[2] / K.sum(-1, keepdim=True)).square().sum().backward()
    for name, got, right in zip(("x", "xs", "ys"), leaves, others, strict=True):
        check(got.grad is not None, f"{name} gets no gradient: is something detached?")
        same(got.grad, right.grad, f"the gradient of {name}", rtol=1e-5, atol=1e-8)


def _inputs():
    g = torch.Generator().manual_seed(61)
    x, xs, ys = (torch.randn(*shape, generator=g, dtype=F64) for shape in ((2, 3), (5, 3), (5, 4)))
    return x, xs, ys


def probe_gaussian(kernel_regression):
    return kernel_regression(*_inputs(), gaussian_kernel)


def probe_lopsided(kernel_regression):
    return kernel_regression(*_inputs(), lopsided_kernel)


def probe_dot_exp(kernel_regression):
    return kernel_regression(*_inputs(), dot_exp_kernel)


def probe_constant_targets(kernel_regression):
    x, xs, ys = _inputs()
    return kernel_regression(x, xs, torch.ones_like(ys), laplace_kernel)


def probe_one_point(kernel_regression):
    x, xs, ys = _inputs()
    return kernel_regression(x, xs[:1], ys[:1], gaussian_kernel)


def probe_one_output(kernel_regression):
    x, xs, ys = _inputs()
    return kernel_regression(x, xs, ys[:, :1], gaussian_kernel)


def probe_dtype(kernel_regression):
    return str(kernel_regression(*(part.float() for part in _inputs()), gaussian_kernel).dtype)


def probe_attention(kernel_regression, attention_kernel):
    return kernel_regression(*_inputs(), attention_kernel(3))


def probe_kernel_ratios(attention_kernel):
    x, xs, _ = _inputs()
    K = attention_kernel(3)(x[:, None], xs[None])  # [T, S]
    return K / K[:, :1]


def probe_kernel_of_vector_and_matrix(attention_kernel):
    x, xs, _ = _inputs()
    K = attention_kernel(3)(x[0], xs)  # [S]
    return K / K[:1]


def probe_kernel_of_two_vectors(attention_kernel):
    x, xs, _ = _inputs()
    kernel = attention_kernel(3)
    return number(kernel(x[0], xs[0]), "the kernel") / number(kernel(x[0], xs[1]), "the kernel")


def probe_kernel_value(attention_kernel):
    x, xs, _ = _inputs()
    return number(attention_kernel(3)(x[0], xs[0]), "the kernel")


def probe_kernel_of_another_width(attention_kernel):
    kernel = attention_kernel(16)
    a, b = torch.linspace(-1, 1, 16, dtype=F64), torch.linspace(0, 1, 16, dtype=F64)
    return number(kernel(a, b), "the kernel") / number(kernel(a, 0 * b), "the kernel")


def probe_gradients(kernel_regression):
    leaves = [part.requires_grad_() for part in _inputs()]
    kernel_regression(*leaves, gaussian_kernel).square().sum().backward()
    return [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]


def probe_precision(kernel_regression):
    x, xs, ys = _inputs()
    K = gaussian_kernel(x[:, None], xs[None])
    return precision(kernel_regression(x, xs, ys, gaussian_kernel) - K @ ys / K.sum(-1, keepdim=True))


def probe_as_many_queries_as_points(kernel_regression):
    _, xs, ys = _inputs()
    return kernel_regression(xs.flip(0), xs, ys, lopsided_kernel)


def probe_constant_values_stay(kernel_regression):
    x, xs, ys = _inputs()
    return precision(kernel_regression(x, xs, torch.ones_like(ys), gaussian_kernel) - 1)
