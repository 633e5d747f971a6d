"""Public checks of q1_8: dot_mean, dot_variance, unit_scale and variance_lines."""

import torch

from course_utils.checking.compare import check, number, same

F64 = torch.float64
MU, SIGMA = torch.tensor([1.0, -2.0, 0.5], dtype=F64), 0.5


def test_mean_and_scale(dot_mean, unit_scale):
    """At mu = (1, -2, 0.5) the mean of q . k is 5.25, and for width 64 the divisor is 8."""
    same(number(dot_mean(MU, SIGMA), "dot_mean"), 5.25, "dot_mean")
    same(number(unit_scale(64), "unit_scale"), 8.0, "unit_scale(64)")


def test_variance_against_simulation(dot_variance, rng):
    """The variance agrees with 20,000 simulated dot products, to within five standard errors."""
    q, k = (MU + SIGMA * torch.randn(20_000, 3, generator=rng, dtype=F64) for _ in range(2))
    dots = (q * k).sum(-1)
    squares = (dots - dots.mean()).square()
    seen, error = squares.mean().item(), squares.std().item() / len(dots) ** 0.5
    got = number(dot_variance(MU, SIGMA), "dot_variance")
    check(abs(got - seen) < 5 * error, f"dot_variance is {got:.4g}, but simulated dot products have variance "
          f"{seen:.4g} (standard error {error:.2g})")


def test_lines(variance_lines, dot_variance):
    """The derivation has at least three lines, each a number, and all are equal."""
    lines = variance_lines(MU, SIGMA)
    check(isinstance(lines, (list, tuple)), "variance_lines returns a list")
    check(len(lines) >= 3, f"the derivation has {len(lines)} lines, at least three are asked for")
    values = [number(line, f"line {i}") for i, line in enumerate(lines)]
    for i, value in enumerate(values[1:], 1):
        check(abs(value - values[i - 1]) <= 1e-6 * abs(values[i - 1]), f"line {i} is {value:.6g}, but the line before "
              f"it is {values[i - 1]:.6g}: the first step that is not an equality")
    same(values[-1], number(dot_variance(MU, SIGMA), "dot_variance"), "the last line, against dot_variance", rtol=1e-6)


def _mu(d=4):
    return torch.randn(d, generator=torch.Generator().manual_seed(81), dtype=F64) + 0.3


def probe_mean(dot_mean):
    return dot_mean(_mu(), 0.7)


def probe_mean_wide(dot_mean):
    return dot_mean(_mu(7), 1.6)


def probe_variance(dot_variance):
    return dot_variance(_mu(), 0.7)


def probe_variance_wide_sigma(dot_variance):
    return dot_variance(_mu(3), 1.9)


def probe_variance_centred(dot_variance):
    return dot_variance(0 * _mu(5), 0.6)


def probe_scale(unit_scale):
    return unit_scale(9)


def probe_scale_large(unit_scale):
    return unit_scale(512)


def probe_first_broken_step(variance_lines):
    values = [number(line, "a line") for line in variance_lines(_mu(), 0.7)]
    steps = zip(values, values[1:], strict=False)
    return [abs(a - b) > 1e-6 * abs(a) for a, b in steps].index(True) if max(values) - min(values) > 1e-5 else -1


def probe_at_least_three_lines(variance_lines):
    return len(variance_lines(_mu(), 0.7)) >= 3


def probe_second_line(variance_lines):
    return variance_lines(_mu(), 0.7)[1]


def probe_first_line(variance_lines):
    return variance_lines(_mu(), 0.7)[0]


def probe_last_line(variance_lines):
    return variance_lines(_mu(), 0.7)[-1]
