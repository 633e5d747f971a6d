"""Hidden checks of q1_8: dot_mean, dot_variance, unit_scale and variance_lines."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, number, same

F64 = torch.float64


def _draw(rng, d):
    """A mean with unequal entries, not centred, and a standard deviation that is not 1."""
    mu = 1.5 * torch.randn(d, generator=rng, dtype=F64) + 0.4
    sigma = 0.5 + 0.3 * torch.rand(1, generator=rng, dtype=F64).item()
    return mu, sigma


def _moments(mu, sigma):
    """Mean and variance of q . k from the moments of each q_i k_i: independent terms add up."""
    means = [float(m) ** 2 for m in mu]
    squares = [(float(m) ** 2 + sigma**2) ** 2 for m in mu]  # E[q_i^2] E[k_i^2]
    return sum(means), sum(s - m**2 for s, m in zip(squares, means, strict=True))


def _mistakes(mu, sigma):
    """Wrong variances with what leads to them."""
    d, mm = len(mu), (mu @ mu).item()
    return {
        "the first term carries an extra factor d": 2 * d * sigma**2 * mm + d * sigma**4,
        "one half is missing: you held q (or k) fixed, and both are random": sigma**2 * mm + d * sigma**4,
        "the terms with mu are missing: the means are not zero": d * sigma**4,
        "you have taken q and k for the same vector": 4 * sigma**2 * mm + 2 * d * sigma**4,
        "that is the second moment: subtract the square of the mean": 2 * sigma**2 * mm + d * sigma**4 + mm**2,
        "sigma is the standard deviation; you use it as the variance": 2 * sigma * mm + d * sigma**2,
        "that is the standard deviation, the variance is its square": math.sqrt(2 * sigma**2 * mm + d * sigma**4),
        "the width d does not enter the last term": 2 * sigma**2 * mm + sigma**4,
    }


def _variance(got, mu, sigma, what):
    same_or_because(number(got, what), _moments(mu, sigma)[1], what, _mistakes(mu, sigma), rtol=1e-6)


def _lines(variance_lines, mu, sigma):
    lines = variance_lines(mu, sigma)
    if isinstance(lines, torch.Tensor) and lines.ndim == 1:
        lines = list(lines)
    check(isinstance(lines, (list, tuple)), "variance_lines returns a list with one number per line")
    check(len(lines) >= 3, f"the derivation has {len(lines)} lines, at least three are asked for")
    return [number(line, f"line {i}") for i, line in enumerate(lines)]


def test_mean(dot_mean, rng):
    """The mean of q . k is right for several widths, means and standard deviations."""
    for d in (1, 3, 8):
        mu, sigma = _draw(rng, d)
        got, expected = number(dot_mean(mu, sigma), "dot_mean"), _moments(mu, sigma)[0]
        same_or_because(got, expected, f"dot_mean at d = {d}", {
            "the sum of mu is squared, and each entry is squared by itself": mu.sum().item() ** 2,
            "that is the mean if q and k were the same vector; they are independent": expected + d * sigma**2,
            "d times too large": d * expected,
            "that is divided by d": expected / d,
            "q and k are not centred, so the mean is not 0": 0.0,
        })
    same(number(dot_mean(torch.zeros(5, dtype=F64), 1.3), "dot_mean"), 0.0, "dot_mean at mu = 0")


@pytest.mark.weight(3)
def test_variance(dot_variance, rng):
    """The variance of q . k equals the exact one, from the moments of the single products."""
    for d in (3, 4, 9):
        mu, sigma = _draw(rng, d)
        _variance(dot_variance(mu, sigma), mu, sigma, f"dot_variance at d = {d}")
    mu, sigma = _draw(rng, 5)
    _variance(dot_variance(mu, 2.2), mu, 2.2, "dot_variance at sigma = 2.2")


def test_variance_special_cases(dot_variance, rng):
    """Zero means, equal means, one dimension and large means are right as well."""
    for mu, sigma in ((torch.zeros(6, dtype=F64), 1.0), (torch.zeros(4, dtype=F64), 0.7),
                      (torch.full((5,), 1.2, dtype=F64), 0.9), (_draw(rng, 1)[0], 0.6), (10 * _draw(rng, 7)[0], 0.8)):
        _variance(dot_variance(mu, sigma), mu, sigma, f"dot_variance at mu = {[round(m, 2) for m in mu.tolist()]}")


def test_simulation(dot_mean, dot_variance, rng):
    """Mean and variance agree with 200,000 simulated dot products, to within six standard errors."""
    mu, sigma = _draw(rng, 4)
    q, k = (mu + sigma * torch.randn(200_000, 4, generator=rng, dtype=F64) for _ in range(2))
    dots = (q * k).sum(-1)
    squares = (dots - dots.mean()).square()
    for name, got, sample in (("mean", dot_mean(mu, sigma), dots), ("variance", dot_variance(mu, sigma), squares)):
        got, seen, error = number(got, f"dot_{name}"), sample.mean().item(), sample.std().item() / 200_000**0.5
        check(abs(got - seen) < 6 * error, f"dot_{name} is {got:.5g}, but simulation gives {seen:.5g} "
              f"with a standard error of {error:.2g}")


@pytest.mark.weight(2)
def test_unit_scale(unit_scale, rng):
    """q . k / unit_scale(d) has variance 1 when the entries are standard normal, for every width d."""
    for d in (7, 1, 2, 64, 1000, int(torch.randint(3, 500, (1,), generator=rng))):
        got = number(unit_scale(d), "unit_scale")
        same_or_because(got, math.sqrt(d), f"unit_scale({d})", {
            "dividing by d leaves a variance of 1 / d; the variance goes with the square of the divisor": float(d),
            "that is the factor, and the divisor is asked for": 1 / math.sqrt(d),
            "that is the root of the standard deviation; one root is enough": d**0.25,
            "the variance of q . k grows with d": 1.0,
            "that is rounded to a whole number": float(math.isqrt(d)),
        })


@pytest.mark.weight(2)
def test_lines_are_equal(variance_lines, rng):
    """Every line of the derivation has the same value as the one before it, at several points."""
    for d in (3, 5, 6):
        mu, sigma = _draw(rng, d)
        values = _lines(variance_lines, mu, sigma)
        for i in range(1, len(values)):
            check(math.isclose(values[i], values[i - 1], rel_tol=1e-6, abs_tol=1e-9),
                  f"line {i} is {values[i]:.6g}, but line {i - 1} is {values[i - 1]:.6g}: this step is no equality "
                  "(lines count from 0)")
        check(abs(values[0]) > 1e-6, "the lines are zero")


@pytest.mark.weight(2)
def test_lines_are_the_variance(variance_lines, rng):
    """Every line of the derivation is the variance of q . k."""
    for d in (4, 7):
        mu, sigma = _draw(rng, d)
        for i, value in enumerate(_lines(variance_lines, mu, sigma)):
            _variance(value, mu, sigma, f"line {i} (counting from 0)")


def test_float32(dot_mean, dot_variance, variance_lines, rng):
    """float32 means give the same numbers, to the precision of float32."""
    mu, sigma = _draw(rng, 5)
    mean, variance = _moments(mu, sigma)
    same(number(dot_mean(mu.float(), sigma), "dot_mean"), mean, "dot_mean", rtol=1e-4)
    same(number(dot_variance(mu.float(), sigma), "dot_variance"), variance, "dot_variance", rtol=1e-3)
    for i, value in enumerate(_lines(variance_lines, mu.float(), sigma)):
        same(value, variance, f"line {i}", rtol=1e-3)
