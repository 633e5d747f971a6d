"""Hidden checks of q1_13: first_false_line."""

import math

import pytest
import torch

from course_utils.checking.compare import check, number, same
from course_utils.hw1.spot_the_error import DERIVATION

F64 = torch.float64


def _draw(rng, d):
    mu = 1.5 * torch.randn(d, generator=rng, dtype=F64) + 0.4
    return mu, 0.5 + 0.3 * torch.rand(1, generator=rng, dtype=F64).item()


def _variance(mu, sigma):
    """The variance of q . k from the moments of each product of entries."""
    return sum((float(m) ** 2 + sigma**2) ** 2 - float(m) ** 4 for m in mu)


def _answer(first_false_line):
    got = first_false_line()
    check(isinstance(got, (tuple, list)) and len(got) == 2, "first_false_line returns the pair (index, repaired)")
    check(callable(got[1]), "the second part is the repaired line, a function of (mu, sigma)")
    return number(got[0], "the index"), got[1]


def _repaired(first_false_line, mu, sigma, rtol=1e-6):
    got, expected = number(_answer(first_false_line)[1](mu, sigma), "the repaired line"), _variance(mu, sigma)
    for i, line in enumerate(DERIVATION):
        false = number(line(mu, sigma), f"line {i}")
        differs = not math.isclose(false, expected, rel_tol=1e-3)
        check(not (differs and math.isclose(got, false, rel_tol=1e-5)), f"your repaired line equals line {i} as it "
              "stands, which is false")
    same(got, expected, f"the repaired line at d = {len(mu)}, sigma = {sigma:.3g}", rtol=rtol)


@pytest.mark.weight(3)
def test_index(first_false_line, rng):
    """The index, counted from 0, is that of the first line that is not the variance of q . k."""
    index = _answer(first_false_line)[0]
    mu, sigma = _draw(rng, 4)
    true = [math.isclose(number(line(mu, sigma), "a line"), _variance(mu, sigma), rel_tol=1e-6) for line in DERIVATION]
    expected = true.index(False)
    check(index != expected + 1, f"lines count from 0, and line {index:g} is not the first false one: do you count "
          "from 1?")
    if index in range(len(true)) and true[int(index)]:
        check(False, f"line {index:g} is true: put numbers into it and into the line before")
    check(index == expected, f"the index is {index:g}, and that is not the first false line")


@pytest.mark.weight(2)
def test_repair(first_false_line, rng):
    """The repaired line is the variance of q . k, at random means and standard deviations."""
    for d in (3, 5, 8):
        _repaired(first_false_line, *_draw(rng, d))
    _repaired(first_false_line, _draw(rng, 4)[0], 1.9)


def test_repair_agrees_with_the_true_lines(first_false_line, rng):
    """The repaired line has the value of the true lines before it."""
    mu, sigma = _draw(rng, 6)
    got = number(_answer(first_false_line)[1](mu, sigma), "the repaired line")
    for i in range(3):
        same(got, number(DERIVATION[i](mu, sigma), f"line {i}"), f"the repaired line, against line {i}", rtol=1e-6)


def test_repair_in_special_cases(first_false_line, rng):
    """Zero means, equal means and a single dimension are right as well."""
    for mu, sigma in ((torch.zeros(5, dtype=F64), 1.3), (torch.full((4,), 0.8, dtype=F64), 0.6), _draw(rng, 1)):
        _repaired(first_false_line, mu, sigma)


def test_simulation(first_false_line, rng):
    """The repaired line agrees with 100,000 simulated dot products, to within six standard errors."""
    mu, sigma = _draw(rng, 3)
    q, k = (mu + sigma * torch.randn(100_000, 3, generator=rng, dtype=F64) for _ in range(2))
    dots = (q * k).sum(-1)
    squares = (dots - dots.mean()).square()
    seen, error = squares.mean().item(), squares.std().item() / 100_000**0.5
    got = number(_answer(first_false_line)[1](mu, sigma), "the repaired line")
    check(abs(got - seen) < 6 * error, f"the repaired line is {got:.5g}, but simulation gives {seen:.5g} with a "
          f"standard error of {error:.2g}")


def test_float32(first_false_line, rng):
    """A mean in float32 gives the same number, to the precision of float32."""
    mu, sigma = _draw(rng, 5)
    _repaired(first_false_line, mu.float(), sigma, rtol=1e-3)
