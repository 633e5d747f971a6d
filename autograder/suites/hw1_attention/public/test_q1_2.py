"""Public checks of q1_2: softmax_jacobian and saturation."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number, same, tensor
from course_utils.explain.fingerprints import precision
from course_utils.instruments.no_autograd import without_autograd


def test_worked_numbers(softmax_jacobian):
    """At z = (0, ln 3) the softmax is (1/4, 3/4), and every entry of its Jacobian is 3/16 up to the sign."""
    J = softmax_jacobian(torch.tensor([0.0, math.log(3.0)], dtype=torch.float64))
    expected = torch.tensor([[3.0, -3.0], [-3.0, 3.0]], dtype=torch.float64) / 16
    same(J, expected, "the Jacobian", rtol=0, atol=1e-12)


def test_rows_sum_to_zero(softmax_jacobian, rng):
    """The softmax always sums to 1, so every row and every column of its Jacobian sums to 0."""
    z = torch.randn(5, generator=rng, dtype=torch.float64)
    J = tensor(softmax_jacobian(z), "the Jacobian", shape=(5, 5), dtype=torch.float64)
    check((J.diagonal() > 0).all(), "the diagonal is not positive: raising a score raises its own weight")
    same(J.sum(1), torch.zeros(5, dtype=torch.float64), "the sum of each row", rtol=0, atol=1e-12)
    same(J.sum(0), torch.zeros(5, dtype=torch.float64), "the sum of each column", rtol=0, atol=1e-12)


def test_saturation(saturation):
    """Three equal scores give sqrt(2) / 3 = 0.4714; at (-3, 1, 100, 5, -1) next to nothing is left."""
    flat = number(saturation(torch.zeros(3, dtype=torch.float64)), "saturation(z)")
    same(flat, math.sqrt(2) / 3, "saturation((0, 0, 0))")
    z = torch.tensor([-3.0, 1.0, 100.0, 5.0, -1.0], dtype=torch.float64)
    same(number(saturation(z), "saturation(z)"), 0.0, "saturation((-3, 1, 100, 5, -1))", rtol=0, atol=1e-12)


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
