"""Hidden checks of q3_4: layer_norm_radius and radius_lines."""

import math

import pytest
import torch

from autograder.judge.faults import StudentRaised
from autograder.suites.causes import same_or_because
from autograder.suites.lines import assert_lines
from course_utils.checking.compare import check, number, same

F64 = torch.float64
POINTS = ((4, 1.3, 0.7), (7, -0.6, 2.5), (3, -2.2, -1.1), (12, 0.4, 0.0))  # d, gamma, beta


def _wrong(gamma, d):
    """Wrong radii, with what leads to them."""
    return {
        "the sign of gamma survived, and a distance is not negative (the root of gamma^2 is |gamma|)":
            gamma * math.sqrt(d),
        "that is the unbiased variance, division by d - 1; here it is d": abs(gamma) * math.sqrt(d - 1),
        "that is the unbiased variance with the sign of gamma": gamma * math.sqrt(d - 1),
        "the norm of d entries of size |gamma| grows with sqrt(d)": abs(gamma) * d,
        "the sign of gamma survived, and the norm of d such entries grows with sqrt(d)": gamma * d,
        "the width d is missing; only the mean square of the entries is gamma^2": abs(gamma),
        "this is the square of the norm": gamma**2 * d,
        "gamma is missing": math.sqrt(d),
        "gamma is squared": gamma**2 * math.sqrt(d),
        "the root of d is in the denominator": abs(gamma) / math.sqrt(d),
    }


def _definition(x, gamma, beta):
    """The norm of y - beta with eps = 0, from the definition of layer norm, entry by entry."""
    values = x.tolist()
    mean = sum(values) / len(values)
    root = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    outputs = [gamma * (v - mean) / root + beta for v in values]
    return math.sqrt(sum((y - beta) ** 2 for y in outputs))


def _lines(radius_lines, x, gamma, beta):
    lines = radius_lines(x, gamma, beta)
    if isinstance(lines, torch.Tensor) and lines.ndim == 1:
        lines = list(lines)
    check(isinstance(lines, (list, tuple)), "radius_lines returns a list with one number per line")
    check(len(lines) >= 3, f"the proof has {len(lines)} lines: write at least three")
    return [number(line, f"line {i} (counting from 0)") for i, line in enumerate(lines)]


def _draw(rng, d):
    return 2.5 * torch.randn(d, generator=rng, dtype=F64) + 4


@pytest.mark.weight(2)
def test_radius(layer_norm_radius, rng):
    """The norm of y - beta is right for several widths and scales."""
    for d in (768, int(torch.randint(20, 700, (1,), generator=rng)), 16, 5, 2):
        for gamma in (1.0, 0.3, 2.7):
            same_or_because(number(layer_norm_radius(gamma, d), "layer_norm_radius"), gamma * math.sqrt(d),
                            f"layer_norm_radius({gamma}, {d})", _wrong(gamma, d))


@pytest.mark.weight(2)
def test_negative_gamma(layer_norm_radius):
    """A negative gamma mirrors the output, and the distance stays positive; gamma = 0 gives 0."""
    for d, gamma in ((50, -3.1), (8, -0.4), (3, -1.0)):
        same_or_because(number(layer_norm_radius(gamma, d), "layer_norm_radius"), -gamma * math.sqrt(d),
                        f"layer_norm_radius({gamma}, {d})", _wrong(gamma, d))
    same(number(layer_norm_radius(0.0, 6), "layer_norm_radius"), 0.0, "layer_norm_radius(0, 6)")


def test_radius_of_a_real_layer_norm(layer_norm_radius, rng):
    """Outputs of torch's layer norm, at eps = 0, lie at that distance from beta."""
    for d, gamma, beta in POINTS:
        x = _draw(rng, d)
        y = torch.nn.functional.layer_norm(x, (d,), torch.full_like(x, gamma), torch.full_like(x, beta), 0.0)
        got = number(layer_norm_radius(gamma, d), "layer_norm_radius")
        same_or_because(got, (y - beta).norm().item(), f"layer_norm_radius({gamma}, {d}), against ||y - beta||",
                        _wrong(gamma, d), rtol=1e-6)


@pytest.mark.weight(2)
def test_first_line(radius_lines, rng):
    """The first line is the norm of y - beta from the definition, with eps = 0 and the biased variance."""
    for d, gamma, beta in POINTS:
        x = _draw(rng, d)
        y = gamma * (x - x.mean()) / x.var(unbiased=False).sqrt() + beta
        same_or_because(_lines(radius_lines, x, gamma, beta)[0], _definition(x, gamma, beta),
                        f"line 0 at d = {d}, gamma = {gamma}, beta = {beta}", {
            **_wrong(gamma, d),
            "beta is not subtracted": y.norm().item(),
            "this is the norm of x": x.norm().item(),
            "beta is subtracted twice": (y - 2 * beta).norm().item(),
        }, rtol=1e-6)


@pytest.mark.weight(3)
def test_every_step(radius_lines, rng):
    """Every line equals the one before it, at random points; the first step that fails is named."""
    for d, gamma, beta in POINTS:
        x = _draw(rng, d)
        lines = _lines(radius_lines, x, gamma, beta)
        assert_lines(lines, lines[0], f"at d = {d}, gamma = {gamma}, beta = {beta}")


@pytest.mark.weight(2)
def test_every_line_is_the_radius(radius_lines, rng):
    """Every line is |gamma| sqrt(d), for gamma of either sign."""
    for d, gamma, beta in POINTS:
        for i, value in enumerate(_lines(radius_lines, _draw(rng, d), gamma, beta)):
            same_or_because(value, abs(gamma) * math.sqrt(d), f"line {i} (counting from 0) at d = {d}, gamma = {gamma}",
                            _wrong(gamma, d), rtol=1e-6)


def test_position_does_not_count(radius_lines, rng):
    """Whether x is large, tiny or far from 0, the lines stay what they are; beta does not count either."""
    d, gamma = 6, -1.4
    x = torch.randn(d, generator=rng, dtype=F64)
    for told, moved, beta in (("times 1000", 1000 * x, 0.5), ("over 1000", x / 1000, 0.5), ("plus 50", x + 50, 0.5),
                              ("over ten million", x / 1e7, 0.0), ("with beta = 20", x, 20.0),
                              ("of two entries", x[:2], 0.5)):
        for i, value in enumerate(_lines(radius_lines, moved, gamma, beta)):
            same(value, 1.4 * math.sqrt(len(moved)), f"line {i} (counting from 0) for x {told}", rtol=1e-6)


@pytest.mark.parametrize("kind", ["ints", "0-dim tensors"])
def test_other_numbers(layer_norm_radius, radius_lines, rng, kind):
    """gamma and beta are numbers of any kind: ints and 0-dim tensors as well as floats."""
    x = _draw(rng, 7)
    for gamma, beta in ((2, 1), (-3, 0)):
        given = (gamma, beta) if kind == "ints" else (torch.tensor(float(v), dtype=F64) for v in (gamma, beta))
        gamma_given, beta_given = given
        told, right = f"for gamma = {gamma} and beta = {beta} as {kind}", abs(gamma) * math.sqrt(7)
        same(number(layer_norm_radius(gamma_given, 7), "layer_norm_radius"), right, f"the radius {told}", rtol=1e-6)
        for i, value in enumerate(_lines(radius_lines, x, gamma_given, beta_given)):
            same(value, right, f"line {i} (counting from 0) {told}", rtol=1e-6)


def test_proof_looks_at_x(radius_lines, rng):
    """The first line is taken from the definition, so the proof looks at the entries of x, not at their number only."""
    for d, gamma, beta in POINTS[:2]:
        x = _draw(rng, d)
        x[int(torch.randint(d, (1,), generator=rng))] = math.nan
        try:
            lines = [torch.as_tensor(line) for line in radius_lines(x, gamma, beta)]
        except StudentRaised:  # it looks, and does not like what it sees
            continue
        check(any(line.isnan().any() for line in lines), "radius_lines never looks at the entries of x, or an entry "
              "that is NaN would show: its first line is the norm of y - beta, with y from layer norm of x")


def test_float32(radius_lines, rng):
    """x in float32 gives the same lines, to the precision of float32."""
    for i, value in enumerate(_lines(radius_lines, _draw(rng, 8).float(), -0.9, 0.3)):
        same(value, 0.9 * math.sqrt(8), f"line {i} (counting from 0)", rtol=1e-3)
