"""Public checks of q1_2: softmax_jacobian and saturation."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import Wrong, check, number, same, tensor
from course_utils.explain.fingerprints import precision
from course_utils.instruments.no_autograd import without_autograd


def test_worked_numbers(softmax_jacobian):
    """At z = (0, ln 3) the softmax is (1/4, 3/4), and every entry of its Jacobian is 3/16 up to the sign."""
    # keeps: jacobian
    J = softmax_jacobian(torch.tensor([0.0, math.log(3.0)], dtype=torch.float64))
    expected = torch.tensor([[3.0, -3.0], [-3.0, 3.0]], dtype=torch.float64) / 16
    same(J, expected, "the Jacobian", rtol=0, atol=1e-12)


def test_rows_sum_to_zero(softmax_jacobian, rng):
    """The softmax always sums to 1, so every row and every column of its Jacobian sums to 0."""
    # keeps: jacobian, dtype
    z = torch.randn(5, generator=rng, dtype=torch.float64)
    J = tensor(softmax_jacobian(z), "the Jacobian", shape=(5, 5), dtype=torch.float64)
    check((J.diagonal() > 0).all(), "the diagonal is not positive: raising a score raises its own weight")
    same(J.sum(1), torch.zeros(5, dtype=torch.float64), "the sum of each row", rtol=0, atol=1e-12)
    same(J.sum(0), torch.zeros(5, dtype=torch.float64), "the sum of each column", rtol=0, atol=1e-12)


def test_saturation(saturation):
    """Three equal scores give sqrt(2) / 3 = 0.4714; at (-3, 1, 100, 5, -1) next to nothing is left."""
    # keeps: saturation
    flat = number(saturation(torch.zeros(3, dtype=torch.float64)), "saturation(z)")
    same(flat, math.sqrt(2) / 3, "saturation((0, 0, 0))")
    z = torch.tensor([-3.0, 1.0, 100.0, 5.0, -1.0], dtype=torch.float64)
    same(number(saturation(z), "saturation(z)"), 0.0, "saturation((-3, 1, 100, 5, -1))", rtol=0, atol=1e-12)


def test_one_score_and_many(softmax_jacobian, rng):
    """J is y_i (d_ij - y_j), for one score and for seven."""
    # keeps: jacobian, any-n, dtype
    for n in (1, 7):
        z = 2 * torch.randn(n, generator=rng, dtype=torch.float64)
        y = torch.exp(z) / torch.exp(z).sum()
        same(softmax_jacobian(z), torch.diag(y) - torch.outer(y, y), f"the Jacobian of {n} scores", rtol=0, atol=1e-12)
    tensor(softmax_jacobian(torch.zeros(3)), "the Jacobian in float32", shape=(3, 3), dtype=torch.float32)


def test_large_scores(softmax_jacobian, saturation):
    """Scores of 10000 and -10000 give what their differences give: nothing overflows."""
    # keeps: large
    z = torch.tensor([1e4, 1e4 - math.log(3.0), -1e4], dtype=torch.float64)
    expected = torch.tensor([[3.0, -3.0, 0.0], [-3.0, 3.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64) / 16
    same(softmax_jacobian(z), expected, "the Jacobian at (10000, 10000 - ln 3, -10000)", rtol=0, atol=1e-9)
    same(number(saturation(z), "saturation(z)"), 3 / 8, "its saturation", rtol=1e-6)
    flat = tensor(softmax_jacobian(torch.tensor([1e4, 1e4])), "the Jacobian in float32", shape=(2, 2))
    same(flat, torch.tensor([[0.25, -0.25], [-0.25, 0.25]]), "the Jacobian at (10000, 10000) in float32", rtol=0,
         atol=1e-3)


def test_no_autograd(softmax_jacobian, rng):
    """The Jacobian is a formula in the weights: the same with autograd switched off, and tiny entries are exact."""
    # keeps: no-autograd
    z = torch.randn(4, generator=rng, dtype=torch.float64)
    usual = tensor(softmax_jacobian(z), "the Jacobian", shape=(4, 4))
    try:
        without = run_beside(without_autograd, softmax_jacobian, z)
    except Exception as error:
        raise Wrong("with autograd switched off your function fails: write the Jacobian as a formula in the weights",
                    "autograd-for-the-formula") from error
    same(without, usual, "the Jacobian with autograd switched off", rtol=0, atol=1e-9)
    z = torch.tensor([0.0, -10.0, -28.0], dtype=torch.float64)
    y = torch.softmax(z, -1)
    tiny = tensor(softmax_jacobian(z), "the Jacobian", shape=(3, 3))[0, 2]
    check(abs(tiny / (-y[0] * y[2]) - 1) <= 1e-9, "the entry [0, 2] at (0, -10, -28) has lost its digits: it is a "
          "product of two weights, and differences cannot see it", "finite-differences")


def _z(n, seed=21):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def probe_jacobian_two(softmax_jacobian):
    return softmax_jacobian(_z(2))


def probe_jacobian(softmax_jacobian):
    return softmax_jacobian(_z(5))


def probe_jacobian_wide(softmax_jacobian):
    return softmax_jacobian(3 * _z(7))


def probe_jacobian_shifted(softmax_jacobian):
    return softmax_jacobian(_z(4) + 1000)


def probe_jacobian_saturated(softmax_jacobian):
    return softmax_jacobian(torch.tensor([-3.0, 1.0, 100.0, 5.0, -1.0], dtype=torch.float64))


def probe_jacobian_float32(softmax_jacobian):
    return softmax_jacobian(torch.tensor([-3.0, 1.0, 100.0, 99.0, -1.0]))


def probe_jacobian_precision(softmax_jacobian):
    return precision(softmax_jacobian(_z(5)).sum(-1))


def probe_jacobian_dtype(softmax_jacobian):
    return [str(softmax_jacobian(_z(3).to(dtype)).dtype) for dtype in (torch.float32, torch.float64)]


def probe_saturation(saturation):
    return saturation(_z(5))


def probe_saturation_flat(saturation):
    return saturation(torch.zeros(4, dtype=torch.float64))


def probe_saturation_tie(saturation):
    return saturation(torch.tensor([50.0, 0.0, 50.0, 0.0], dtype=torch.float64))


def probe_saturation_wide(saturation):
    return saturation(4 * _z(6))


def probe_saturation_saturated(saturation):
    return saturation(torch.tensor([-3.0, 1.0, 100.0, 5.0, -1.0], dtype=torch.float64))


def probe_without_autograd(softmax_jacobian):
    usual = softmax_jacobian(_z(4))
    try:
        return torch.allclose(run_beside(without_autograd, softmax_jacobian, _z(4)), usual)
    except Exception:
        return False


def probe_digits(softmax_jacobian):
    y = torch.exp(_z(5)) / torch.exp(_z(5)).sum()
    return precision(softmax_jacobian(_z(5)) - (torch.diag(y) - torch.outer(y, y)))


def probe_finite_at_large_scores(softmax_jacobian):
    return bool(softmax_jacobian(_z(4) + 1000).isfinite().all())


def probe_last_digits(softmax_jacobian):
    y = torch.exp(_z(5)) / torch.exp(_z(5)).sum()
    largest = (softmax_jacobian(_z(5)) - (torch.diag(y) - torch.outer(y, y))).abs().max()
    return "all" if largest < 1e-13 else "nearly all" if largest < 1e-9 else "fewer"
