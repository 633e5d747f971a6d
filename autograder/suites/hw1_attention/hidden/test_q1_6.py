"""Hidden checks of q1_6: kernel_regression and attention_kernel."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, number, same, tensor
from course_utils.hw1.kernels import dot_exp_kernel, gaussian_kernel, laplace_kernel, lopsided_kernel
from course_utils.instruments.calls import call_with_views

F64 = torch.float64


def _draw(rng, T=3, S=6, D=4, Dv=5, dtype=F64):
    return (torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((T, D), (S, D), (S, Dv)))


def _estimate(x, xs, ys, kernel):
    """Nadaraya-Watson, point by point."""
    rows = []
    for query in x:
        weights = [kernel(query, point) for point in xs]
        rows.append(sum(w * y for w, y in zip(weights, ys, strict=True)) / sum(weights))
    return torch.stack(rows)


def _formed(kernel):
    """The student's kernel, with a look at the shape of what it gives."""
    def formed(a, b):
        return tensor(kernel(a, b), "what your kernel gives", torch.broadcast_shapes(a.shape, b.shape)[:-1], F64)

    return formed


def _attention(x, xs, ys):
    return F.scaled_dot_product_attention(x[None], xs[None], ys[None])[0]


@pytest.mark.weight(2)
@pytest.mark.parametrize("kernel", [gaussian_kernel, laplace_kernel, dot_exp_kernel], ids=lambda k: k.__name__)
def test_values(kernel_regression, rng, kernel):
    """The estimate is the mean of the ys, weighted by the kernel between each query and each point."""
    x, xs, ys = _draw(rng)
    got, expected = kernel_regression(x, xs, ys, kernel), _estimate(x, xs, ys, kernel)
    K = kernel(x[:, None], xs[None])  # [T, S]
    same_or_because(got, expected, f"the estimate with {kernel.__name__}", {
        "the weights must sum to 1, and you do not divide by their sum": K @ ys,
        "you divide by the number of points, not by the sum of the weights": K @ ys / 6,
        "the weights sum to 1 over the queries, not over the points": (K / K.sum(0)) @ ys,
        "the kernel's values are the weights already, up to their sum; no softmax on top": torch.softmax(K, -1) @ ys,
    })


@pytest.mark.weight(2)
def test_query_comes_first(kernel_regression, rng):
    """The kernel is called as kernel(query, point): a kernel that is not symmetric tells."""
    for T, S in ((3, 6), (6, 3), (4, 4), (1, 5), (5, 2)):
        x, xs, ys = _draw(rng, T, S)
        got, expected = kernel_regression(x, xs, ys, lopsided_kernel), _estimate(x, xs, ys, lopsided_kernel)
        same_or_because(got, expected, f"the estimate with lopsided_kernel for T={T} queries and S={S} points", {
            "you call the kernel with the point first, and the query comes first":
                _estimate(x, xs, ys, lambda a, b: lopsided_kernel(b, a)),
            "you take the mean of kernel(query, point) and kernel(point, query); only the first is asked for":
                _estimate(x, xs, ys, lambda a, b: lopsided_kernel(a, b) + lopsided_kernel(b, a)),
        })


def test_constant_targets(kernel_regression, rng):
    """Constant ys come back unchanged, and adding a constant to the ys adds it to the estimate."""
    x, xs, ys = _draw(rng)
    constant = torch.randn(5, generator=rng, dtype=F64)
    for kernel in (gaussian_kernel, lopsided_kernel):
        same(kernel_regression(x, xs, constant.repeat(6, 1), kernel), constant.repeat(3, 1),
             "the estimate for constant ys (weights that sum to 1 give the constant back)")
        plain = tensor(kernel_regression(x, xs, ys, kernel), "the estimate", (3, 5), F64)
        same(kernel_regression(x, xs, ys + constant, kernel), plain + constant, "the estimate for ys + constant")


def test_sizes(kernel_regression, rng):
    """One query, one point, one feature or one output are fine, and so is float32."""
    for T, S, D, Dv in ((1, 6, 4, 5), (3, 1, 2, 4), (2, 5, 1, 3), (4, 3, 2, 1), (1, 1, 1, 1)):
        x, xs, ys = _draw(rng, T, S, D, Dv)
        got = kernel_regression(x, xs, ys, gaussian_kernel)
        same(got, _estimate(x, xs, ys, gaussian_kernel), f"the estimate for T={T}, S={S}, D={D}, Dv={Dv}")
    x, xs, ys = _draw(rng, dtype=torch.float32)
    same(kernel_regression(x, xs, ys, gaussian_kernel), _estimate(x, xs, ys, gaussian_kernel), "the float32 estimate",
         atol=1e-5)


def test_order_of_points(kernel_regression, rng):
    """The order of the points does not matter, the order of the queries is that of the estimates."""
    x, xs, ys = _draw(rng)
    first = tensor(kernel_regression(x, xs, ys, laplace_kernel), "the estimate", (3, 5), F64)
    order = torch.randperm(6, generator=rng)
    same(kernel_regression(x, xs[order], ys[order], laplace_kernel), first, "the estimate with reordered points")
    same(kernel_regression(x.flip(0), xs, ys, laplace_kernel), first.flip(0), "the estimate with reordered queries")
    check((first[0] - first[1]).abs().max() > 1e-6, "two different queries have the same estimate")


def test_kernel_form(attention_kernel, rng):
    """The kernel gives one number for two vectors, broadcasts over leading axes and drops the last one."""
    kernel = attention_kernel(4)
    x, xs, _ = _draw(rng)
    one = number(kernel(x[0], xs[0]), "the kernel of two vectors")
    check(one > 0 and math.isfinite(one), f"the kernel of two vectors is {one}: it must be positive")
    K = tensor(kernel(x[:, None], xs[None]), "the kernel of [T, 1, D] and [1, S, D]", (3, 6), F64)
    pairs = torch.tensor([[number(kernel(a, b), "the kernel of two vectors") for b in xs] for a in x], dtype=F64)
    same(K, pairs, "the kernel of [T, 1, D] and [1, S, D], against pairs of vectors")
    row = tensor(kernel(x[1], xs), "the kernel of [D] and [S, D]", (6,), F64)
    same(row, K[1], "the kernel of [D] and [S, D]")
    high = kernel(x[None, :, None], xs[None, None].expand(2, 1, 6, 4))
    same(high, K.expand(2, 3, 6), "the kernel of [1, T, 1, D] and [2, 1, S, D]")


@pytest.mark.weight(2)
def test_kernel_ratios(attention_kernel, rng):
    """For one query, two keys are weighed in the ratio exp(q . (k1 - k2) / sqrt(d)), for every width d."""
    for d in (2, 5, 9):
        kernel = attention_kernel(d)
        q, xs, _ = _draw(rng, 1, 6, d)
        q = q[0]
        got = tensor(kernel(q, xs), "the kernel of [D] and [S, D]", (6,), F64).log()
        got, products = got - got[0], xs @ q - xs[0] @ q
        distances = -(q - xs).square().sum(-1) / 2
        gaussian = "that is a Gaussian kernel, which weighs long keys down; attention does not"
        same_or_because(got, products / math.sqrt(d), f"the log of the kernel's ratios at d = {d}", {
            "the scale is missing; exponents are q . k / sqrt(d)": products,
            "you divide by d, and the scale is 1 / sqrt(d)": products / d,
            "you multiply by sqrt(d), and divide is right": products * math.sqrt(d),
            gaussian: distances - distances[0],
            f"{gaussian} (bandwidth aside)": (distances - distances[0]) / math.sqrt(d),
        })


@pytest.mark.weight(2)
def test_kernel_makes_attention(attention_kernel, reference, rng):
    """A Nadaraya-Watson estimate with your kernel equals scaled dot-product attention."""
    for T, S, d, Dv in ((3, 6, 4, 5), (2, 7, 9, 3)):
        x, xs, ys = _draw(rng, T, S, d, Dv)
        xs = xs * torch.linspace(0.3, 2, S, dtype=F64)[:, None]  # keys of different lengths
        got = reference.kernel_regression(x, xs, ys, _formed(attention_kernel(d)))
        same(got, _attention(x, xs, ys), f"the estimate with your kernel at d = {d}")


@pytest.mark.weight(2)
def test_regression_is_attention(kernel_regression, attention_kernel, rng):
    """Your regression with your kernel equals scaled dot-product attention with keys xs and values ys."""
    for T, S, d, Dv in ((3, 6, 4, 5), (5, 2, 3, 7), (2, 9, 16, 3)):
        x, xs, ys = _draw(rng, T, S, d, Dv)
        same(kernel_regression(x, xs, ys, attention_kernel(d)), _attention(x, xs, ys), f"the estimate at d = {d}")


def _gradients(function, *inputs):
    """The gradients of what the function gives by each of its inputs, along one fixed direction."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    got = tensor(function(*leaves), "the result", dtype=F64)
    check(got.requires_grad, "no gradient flows: the result is cut off from the inputs (numpy, `.detach()`, `float()`, "
          "`no_grad` or a new tensor made from numbers)")
    up = torch.linspace(-1, 2, got.numel(), dtype=F64).reshape(got.shape)
    return torch.autograd.grad(got, leaves, up, allow_unused=True)


@pytest.mark.weight(2)
@pytest.mark.parametrize("kernel", [gaussian_kernel, lopsided_kernel], ids=lambda k: k.__name__)
def test_gradients(kernel_regression, rng, kernel):
    """Gradients by x, xs and ys are right: the estimate can be a part of a model."""
    inputs = list(_draw(rng))
    mine = _gradients(lambda x, xs, ys: kernel_regression(x, xs, ys, kernel), *inputs)
    theirs = _gradients(lambda x, xs, ys: _estimate(x, xs, ys, kernel), *inputs)
    for name, a, b in zip(("x", "xs", "ys"), mine, theirs, strict=True):
        check(a is not None, f"no gradient reaches {name}: the weights depend on it too")
        same(a, b, f"the gradient of {name} with {kernel.__name__} (is a part of the fraction detached?)")


def test_gradients_through_the_kernel(attention_kernel, reference, rng):
    """With your kernel the estimate has attention's gradients by queries, keys and values."""
    inputs = list(_draw(rng))
    kernel = _formed(attention_kernel(4))
    mine = _gradients(lambda x, xs, ys: reference.kernel_regression(x, xs, ys, kernel), *inputs)
    for name, a, b in zip(("x", "xs", "ys"), mine, _gradients(_attention, *inputs), strict=True):
        check(a is not None, f"no gradient reaches {name} through your kernel")
        same(a, b, f"the gradient of {name} through your kernel")


@pytest.mark.weight(0.5)
def test_memory_layout(kernel_regression, in_box, rng):
    """Transposed tensors give the estimate of their copies: the layout in memory makes no difference."""
    x, xs, ys = _draw(rng)
    got = in_box(call_with_views, kernel_regression, x, xs, ys, gaussian_kernel)
    same(got, _estimate(x, xs, ys, gaussian_kernel), "the estimate from transposed tensors")


@pytest.mark.weight(0.5)
def test_device(kernel_regression, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, kernel_regression, call=(*_draw(rng), gaussian_kernel))
