"""Public checks of q3_4: layer_norm_radius and radius_lines."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number, same
from course_utils.instruments.calls import reads_values

F64 = torch.float64


def _lines(radius_lines, x, gamma, beta):
    lines = radius_lines(x, gamma, beta)
    check(isinstance(lines, (list, tuple)), "radius_lines returns a list with one number per line")
    check(len(lines) >= 3, f"the proof has {len(lines)} lines: write at least three")
    return [number(line, f"line {i}") for i, line in enumerate(lines)]


def test_worked_numbers(layer_norm_radius):
    """At gamma = 2 and d = 9 every output lies at distance 6 from beta; at gamma = -2 too."""
    same(number(layer_norm_radius(2.0, 9), "layer_norm_radius"), 6.0, "layer_norm_radius(2, 9)")
    got = number(layer_norm_radius(-2.0, 9), "layer_norm_radius")
    check(got >= 0, "layer_norm_radius(-2, 9) is negative: a distance is not")
    same(got, 6.0, "layer_norm_radius(-2, 9)")


def test_lines_are_equal(radius_lines):
    """x = (1, 3, 8), gamma = -2, beta = 5: every line is 2 sqrt(3), and each equals the one before it."""
    values = _lines(radius_lines, torch.tensor([1.0, 3.0, 8.0], dtype=F64), -2.0, 5.0)
    for i in range(1, len(values)):
        check(math.isclose(values[i], values[i - 1], rel_tol=1e-6), f"line {i} is {values[i]:.6g}, but line {i - 1} is "
              f"{values[i - 1]:.6g}: this step is no equality (lines count from 0)")
    same(values[0], 2 * math.sqrt(3), "line 0")


def test_lines_elsewhere(radius_lines, layer_norm_radius, rng):
    """The lines agree with layer_norm_radius, wherever x lies and whatever beta is."""
    for d, gamma, beta in ((4, 0.5, 0.0), (7, -1.5, 3.0)):
        x = 10 * torch.randn(d, generator=rng, dtype=F64) + 4
        radius = number(layer_norm_radius(gamma, d), "layer_norm_radius")
        for i, value in enumerate(_lines(radius_lines, x, gamma, beta)):
            same(value, radius, f"line {i} at d = {d}, against your layer_norm_radius", rtol=1e-6)


X = torch.tensor([0.7, -1.9, 2.4, 0.1, 3.3], dtype=F64)


def probe_radius(layer_norm_radius):
    return [number(layer_norm_radius(1.7, d), "the radius") for d in (2, 5, 16)]


def probe_radius_negative(layer_norm_radius):
    return number(layer_norm_radius(-0.6, 7), "the radius")


def probe_radius_zero(layer_norm_radius):
    return number(layer_norm_radius(0.0, 7), "the radius")


def probe_first_line(radius_lines):
    return number(radius_lines(X, 1.7, 0.4)[0], "line 0")


def probe_first_line_negative(radius_lines):
    return number(radius_lines(X, -1.7, 0.4)[0], "line 0")


def probe_last_line(radius_lines):
    return number(radius_lines(X, 1.7, 0.4)[-1], "the last line")


def probe_last_line_negative(radius_lines):
    return number(radius_lines(X, -1.7, 0.4)[-1], "the last line")


def _wrong_values(lines, radius):
    """The values among the lines that are not the radius, in units of it: the same wherever the broken line stands."""
    ratios = [number(v, "a line") / radius for v in lines]
    return sorted({round(r, 6) for r in ratios if not math.isclose(r, 1.0, rel_tol=1e-9)})


def probe_wrong_values(radius_lines):
    return _wrong_values(radius_lines(X, 1.7, 0.4), 1.7 * math.sqrt(5))


def probe_wrong_values_negative(radius_lines):
    return _wrong_values(radius_lines(X, -1.7, 0.4), 1.7 * math.sqrt(5))


def probe_first_wrong_value(radius_lines):
    values = [number(v, "a line") for v in radius_lines(X, 1.7, 0.4)]
    return next((v for v in values if not math.isclose(v, 1.7 * math.sqrt(5), rel_tol=1e-9)), "none")


def probe_without_beta(radius_lines):
    return number(radius_lines(X, 1.7, 0.0)[0], "line 0")


def probe_count(radius_lines):
    return len(radius_lines(X, 1.7, 0.4)) >= 3


def probe_looks_at_x(radius_lines):
    return run_beside(reads_values, radius_lines, X, 1.7, 0.4)
