"""Public checks of q1_17: saturation_bound."""

import torch

from course_utils.checking.beside import ask_all
from course_utils.checking.compare import check, number

F64 = torch.float64


def _size(weights):
    """The Frobenius norm of the softmax's Jacobian at these weights."""
    return float(torch.linalg.norm(torch.diag(weights) - torch.outer(weights, weights)))


def test_form(saturation_bound):
    """A Python float comes back, and at largest = 1 nothing is left: 0."""
    # keeps: float, form
    for largest in (0.3, 0.9, 1.0):
        got = saturation_bound(largest)
        check(isinstance(got, float), f"saturation_bound({largest}) is a {type(got).__name__}, expected a Python float")
    check(abs(number(saturation_bound(1.0), "saturation_bound(1.0)")) < 1e-12, "a softmax with all weight on one place "
          "has a Jacobian of zeros, so the bound c (1 - largest) is 0 there")


def test_it_is_a_bound(saturation_bound, rng):
    """No softmax lies above it: 300 random ones of 2 to 40 scores, flat and sharp."""
    # keeps: bound
    scales = [10 ** (i % 7 / 2 - 1) for i in range(300)]
    drawn = [(x * torch.randn(2 + i % 39, generator=rng, dtype=F64)).softmax(0) for i, x in enumerate(scales)]
    bounds = ask_all(saturation_bound, [(weights.max().item(),) for weights in drawn])
    for weights, bound in zip(drawn, bounds, strict=True):
        largest, size, got = weights.max().item(), _size(weights), number(bound, "the bound")
        check(got >= size - 1e-9, f"{len(weights)} weights with the largest {largest:.4g} have |J| = {size:.4g}, above "
              f"your bound {got:.4g}")


def test_it_is_the_smallest(saturation_bound):
    """Two weights, 0.9999 and 0.0001, come within a thousandth of it."""
    # keeps: smallest
    largest = 0.9999
    size, got = _size(torch.tensor([largest, 1 - largest], dtype=F64)), number(saturation_bound(largest), "the bound")
    check(got >= size, f"two weights with the largest {largest} have |J| = {size:.6g}, above your bound {got:.6g}")
    check(got <= 1.001 * size, f"at {largest} your bound is {got:.6g}; the largest |J| there is is {size:.6g}, so a "
          "smaller constant will do")


def test_it_is_proportional(saturation_bound):
    """The bound is c (1 - largest): at 0.2 it is eight times what it is at 0.9."""
    # keeps: form
    far, near = (number(saturation_bound(largest), "the bound") for largest in (0.2, 0.9))
    check(abs(far - 8 * near) < 1e-9 * abs(far), f"your bound is {far:.6g} at 0.2 and {near:.6g} at 0.9: not in "
          "proportion to 1 - largest")


def probe_half(saturation_bound):
    return saturation_bound(0.5)


def probe_sharp(saturation_bound):
    return saturation_bound(0.97)


def probe_flat(saturation_bound):
    return saturation_bound(0.05)


def probe_type(saturation_bound):
    return type(saturation_bound(0.75)).__name__
