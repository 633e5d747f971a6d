"""Hidden checks of q1_2: softmax_jacobian and saturation."""

import pytest
import torch

from autograder.judge.faults import StudentRaised
from autograder.suites.by_formula import watched
from autograder.suites.causes import same_or_because
from course_utils.checking.compare import Wrong, check, number, same, tensor
from course_utils.instruments.no_autograd import without_autograd

F64 = torch.float64
TIGHT = {"rtol": 0.0, "atol": 1e-12}
SMALLEST = 1.1 * torch.finfo(F64).tiny  # smaller numbers have fewer digits
DIGITS = 2e-12  # a formula is off by 1e-13 at most, even by way of logarithms; a step along the imaginary axis by more
SATURATED = torch.tensor([-3.0, 1.0, 100.0, 5.0, -1.0], dtype=F64)


def _true_jacobian(z):
    return torch.autograd.functional.jacobian(lambda x: torch.softmax(x, -1), z)


def test_shape_and_dtype(softmax_jacobian, rng):
    """A vector of n scores gives an n x n matrix of the same dtype, also for n = 1 and in float32."""
    for n in (1, 2, 6):
        for dtype, atol in ((torch.float32, 1e-6), (F64, 1e-12)):
            z = torch.randn(n, generator=rng, dtype=dtype)
            J = tensor(softmax_jacobian(z), "the Jacobian", shape=(n, n), dtype=dtype)
            same(J, _true_jacobian(z), f"the Jacobian of {n} scores in {dtype}", rtol=0, atol=atol)


@pytest.mark.weight(3)
def test_values(softmax_jacobian, rng):
    """Every entry equals what automatic differentiation of the softmax gives."""
    for n, spread in ((3, 1.0), (5, 2.0), (9, 0.3)):
        z = spread * torch.randn(n, generator=rng, dtype=F64)
        a = torch.softmax(z, -1)
        causes = {
            "only the diagonal is there; every score moves every weight, they share the normaliser":
                torch.diag(a * (1 - a)),
            "the outer product has the wrong sign; raising one score lowers the other weights":
                torch.diag(a) + torch.outer(a, a),
            "the whole Jacobian has the wrong sign": torch.outer(a, a) - torch.diag(a),
            "the outer product is missing": torch.diag(a),
            "the diagonal is missing": -torch.outer(a, a),
            "y * y.T of a vector is no outer product; a vector has no transpose, so it squares each entry":
                torch.diag(a) - a * a,
            "that is the sigmoid's derivative on the diagonal": torch.diag(torch.sigmoid(z) * (1 - torch.sigmoid(z))),
        }
        same_or_because(softmax_jacobian(z), _true_jacobian(z), "the Jacobian", causes, **TIGHT)


def test_structure(softmax_jacobian, rng):
    """The Jacobian is symmetric, its rows sum to 0, the diagonal is positive and the rest negative."""
    J = tensor(softmax_jacobian(torch.randn(6, generator=rng, dtype=F64)), "the Jacobian", (6, 6), F64)
    same(J.sum(-1), torch.zeros(6, dtype=F64), "the sum of each row", **TIGHT)
    same(J, J.T, "the Jacobian (left) against its transpose", **TIGHT)
    off = ~torch.eye(6, dtype=torch.bool)
    check((J.diagonal() > 0).all(), "the diagonal is not positive: raising a score raises its own weight")
    check((J[off] < 0).all(), "an entry off the diagonal is not negative: a score lowers the other weights")


@pytest.mark.weight(2)
def test_shift(softmax_jacobian, saturation, rng):
    """Adding the same number to every score changes nothing, however large the number is."""
    z = torch.randn(5, generator=rng, dtype=F64)
    expected = _true_jacobian(z)
    for shift in (7.5, -40.0, 1000.0):
        J = tensor(softmax_jacobian(z + shift), f"the Jacobian at z + {shift}", (5, 5), F64)
        check(J.isfinite().all(), f"the Jacobian at z + {shift} is not finite: use a softmax that subtracts "
              "the largest score first")
        same(J, expected, f"the Jacobian at z + {shift}", rtol=0, atol=1e-10)
        got = number(saturation(z + shift), "saturation(z)")
        same(got, expected.norm().item(), f"saturation(z + {shift})")


def test_first_order(softmax_jacobian, rng):
    """A small step in z moves the softmax by the Jacobian times the step."""
    z, step = torch.randn(2, 7, generator=rng, dtype=F64)
    moved = (torch.softmax(z + 1e-5 * step, -1) - torch.softmax(z - 1e-5 * step, -1)) / 2e-5
    J = tensor(softmax_jacobian(z), "the Jacobian", (7, 7), F64)
    same(J @ step, moved, "the Jacobian times a direction", rtol=1e-6, atol=1e-8)


@pytest.mark.weight(2)
def test_saturated_point(softmax_jacobian, saturation):
    """At (-3, 1, 100, 5, -1) all entries vanish (to 1e-12); at a tenth and a hundredth of it they do not."""
    J = tensor(softmax_jacobian(SATURATED), "the Jacobian", (5, 5), F64)
    check(J.isfinite().all(), "the Jacobian at (-3, 1, 100, 5, -1) is not finite")
    same(J, torch.zeros(5, 5, dtype=F64), "the Jacobian at (-3, 1, 100, 5, -1)", **TIGHT)
    same(number(saturation(SATURATED), "saturation(z)"), 0.0, "saturation((-3, 1, 100, 5, -1))", **TIGHT)
    for scale in (0.1, 0.01):
        expected = _true_jacobian(scale * SATURATED)
        same(softmax_jacobian(scale * SATURATED), expected, f"the Jacobian at {scale} z", **TIGHT)
        same(number(saturation(scale * SATURATED), "saturation(z)"), expected.norm().item(),
             f"saturation({scale} z)", rtol=1e-9, atol=1e-12)


@pytest.mark.weight(2)
def test_saturation_is_the_frobenius_norm(saturation, rng):
    """saturation(z) is the root of the sum of all squared entries of the Jacobian, one number."""
    for n in (3, 5, 8):
        z = torch.randn(n, generator=rng, dtype=F64)
        J = _true_jacobian(z)
        causes = {
            "that is the sum of the squares, the root is missing": J.square().sum().item(),
            "that is the spectral norm, the largest singular value": torch.linalg.matrix_norm(J, 2).item(),
            "that is the sum of the absolute values": J.abs().sum().item(),
            "that is the norm of the diagonal alone": J.diagonal().norm().item(),
            "that is the sum of the singular values": torch.linalg.matrix_norm(J, "nuc").item(),
            "that is the norm divided by n": J.norm().item() / n,
            "that is the largest entry": J.abs().max().item(),
        }
        got = number(saturation(z), "saturation(z)")
        same_or_because(got, J.norm().item(), f"saturation of {n} scores", causes, rtol=1e-9, atol=1e-12)
    same(number(saturation(torch.tensor([300.0, 0.0, 300.0, 1.0], dtype=F64)), "saturation(z)"), 0.5,
         "saturation at a tie of two, all others far below", rtol=1e-9, atol=1e-12)


@pytest.mark.without_autograd
@pytest.mark.weight(2)
def test_closed_form(softmax_jacobian, in_box, rng):
    """The Jacobian is a formula in the weights: it comes out right with autograd switched off."""
    z = torch.randn(5, generator=rng, dtype=F64)
    usual = tensor(softmax_jacobian(z), "the Jacobian", (5, 5), F64)
    same(usual, _true_jacobian(z), "the Jacobian", rtol=0, atol=1e-6)
    try:
        J = in_box(without_autograd, softmax_jacobian, z)
    except StudentRaised as error:
        raise Wrong(f"with autograd switched off your function fails ({error.type_name}): write the Jacobian as a "
                    "formula in the weights", "autograd-for-the-formula") from None
    J = tensor(J, "the Jacobian with autograd switched off", (5, 5))
    check(torch.allclose(J.double(), _true_jacobian(z), rtol=0, atol=1e-6), "with autograd switched off the Jacobian "
          "comes out wrong: write it as a formula in the weights", "autograd-for-the-formula")


@pytest.mark.weight(2)
def test_no_differences(softmax_jacobian, watch, rng):
    """Beside the diagonal entries are products of two weights, with all their digits, however small they are."""
    n = 12  # who moves the score of a tiny weight sees the large one change by less than a rounding
    far = torch.tensor([-22.0, -26.0, -30.0, *[-707.0] * 4], dtype=F64)  # and steps of the last four have no digits
    far[:3] += torch.rand(3, generator=rng, dtype=F64)
    far[3:] += 0.3 * torch.rand(4, generator=rng, dtype=F64)
    z = torch.cat([torch.zeros(1, dtype=F64), far, -2 - 28 * torch.rand(n - 8, generator=rng, dtype=F64)])
    z = z[torch.randperm(n, generator=rng)]
    reads = 64 * n * n  # loops over Python numbers are right, too
    seen = watched(watch, softmax_jacobian, z, mistake="finite-differences", reads=reads)
    J = tensor(seen.value, "the Jacobian", (n, n), F64)
    y, off = torch.softmax(z, -1), ~torch.eye(n, dtype=torch.bool)
    right = -torch.outer(y, y)
    error = (J / right - 1)[off & (right < -SMALLEST)].abs().max().item()
    check(error <= DIGITS, f"for scores up to 710 apart an entry beside the diagonal is off by {error:.2g} of its "
          "size: a product of two weights has all its digits, however small it is, and differences and steps have not",
          "finite-differences")
