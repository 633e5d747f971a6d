"""Hidden checks of q1_17: saturation_bound."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.beside import ask_all
from course_utils.checking.compare import check, number, same

F64 = torch.float64


@pytest.mark.weight(3)
def test_constant(saturation_bound, rng):
    """The bound is the smallest constant times 1 - largest, at many values of the largest weight."""
    for largest in (0.01, 0.25, 0.5, 0.8, 0.999, *torch.rand(5, generator=rng, dtype=F64).tolist()):
        got = number(saturation_bound(largest), "saturation_bound")
        same_or_because(got, 2 * (1 - largest), f"saturation_bound({largest:.4g})", {
            "with c = 1 two weights break it": 1 - largest,
            "the root of 2 is too small a constant: two weights break it": math.sqrt(2) * (1 - largest),
            "c is twice as large as it need be": 4 * (1 - largest),
            "that is |J| of two weights, and more weights can lie above it": 2 * largest * (1 - largest),
            "that is a bound on the square": 4 * (1 - largest) ** 2,
            "that bound is true, but not of the form c (1 - largest)": 1 - largest**2,
            "that grows with the largest weight": 2 * largest,
        })


@pytest.mark.weight(2)
def test_holds_for_every_softmax(saturation_bound, rng):
    """No softmax of 2 to 200 scores lies above it, whether flat, sharp, tied or with one rival."""
    drawn = []
    for i in range(200):
        n = int(torch.randint(2, 200, (1,), generator=rng))
        scores = 10 ** (4 * torch.rand(1, generator=rng, dtype=F64) - 2) * torch.randn(n, generator=rng, dtype=F64)
        if i % 3 == 0:
            scores[:2] = scores.max() + 1  # a tie at the top
        if i % 3 == 1:
            scores[2:] -= 50.0  # one rival has all the rest
        drawn.append(scores.softmax(0))
    bounds = ask_all(saturation_bound, [(weights.max().item(),) for weights in drawn])
    for weights, bound in zip(drawn, bounds, strict=True):
        size = float(torch.linalg.norm(torch.diag(weights) - torch.outer(weights, weights)))
        got = number(bound, "saturation_bound")
        check(got >= size - 1e-9, f"a softmax of {len(weights)} scores has |J| = {size:.5g}, above the bound {got:.5g}")


@pytest.mark.weight(2)
def test_reached_in_the_limit(saturation_bound):
    """With one rival, |J| over the bound tends to 1 as the largest weight does."""
    for left in (1e-2, 1e-4, 1e-6):
        size, got = 2 * (1 - left) * left, number(saturation_bound(1 - left), "saturation_bound")
        check(size <= got * (1 + 1e-6), f"at 1 - {left:g} two weights have |J| = {size:.6g}, above the bound {got:.6g}")
        check(got <= size * (1 + 2 * left) + 1e-12, f"at 1 - {left:g} the bound is {got:.6g}; {size:.6g} is reached")


def test_returns_a_float(saturation_bound):
    """A Python float, and exactly 0 where the largest weight is 1."""
    got = saturation_bound(0.6)
    check(isinstance(got, float), f"saturation_bound gives a {type(got).__name__}, expected a Python float")
    same(number(saturation_bound(1.0), "saturation_bound"), 0.0, "saturation_bound(1.0)")
