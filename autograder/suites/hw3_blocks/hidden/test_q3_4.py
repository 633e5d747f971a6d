"""Hidden checks of q3_4: the three lines, each at letters of its own, and the steps between them."""

import math

import pytest
import torch

from course_utils.checking.chains import Chain, Line, Tie, check_line, check_tie
from course_utils.checking.compare import check, number, same

F64 = torch.float64
CLOSE = {"rtol": 1e-6, "atol": 1e-9}


def _number(rng, low, high):
    return low + (high - low) * torch.rand(1, generator=rng, dtype=F64).item()


def _gamma(rng):
    """A gain of either sign."""
    return (0.3 + _number(rng, 0, 2)) * (1 if torch.rand(1, generator=rng) < 0.5 else -1)


def _free_entries(rng):
    """Entries, and a mean and a deviation that are not theirs."""
    d = int(torch.randint(2, 12, (1,), generator=rng))
    x = 2.5 * torch.randn(d, generator=rng, dtype=F64) + 4
    return {"x": x, "mean": _number(rng, -3, 3), "sigma": _number(rng, 0.2, 3), "gamma": _gamma(rng)}


def _free_sum(rng):
    return {"total": _number(rng, 0.1, 40), "sigma": _number(rng, 0.2, 3), "gamma": _gamma(rng)}


def _free_width(rng):
    return {"gamma": _gamma(rng), "d": int(torch.randint(2, 900, (1,), generator=rng))}


def _norm(x, mean, sigma, gamma):
    """The norm entry by entry, in Python's numbers."""
    return math.sqrt(math.fsum((gamma * (value - mean) / sigma) ** 2 for value in x.tolist()))


def _tied_entries(rng):
    letters = _free_entries(rng)
    total = math.fsum((value - letters["mean"]) ** 2 for value in letters["x"].tolist())
    return letters, {"total": total, "sigma": letters["sigma"], "gamma": letters["gamma"]}


def _tied_sum(rng):
    width, sigma = _free_width(rng), _number(rng, 0.2, 3)
    return {"total": width["d"] * sigma**2, "sigma": sigma, "gamma": width["gamma"]}, width


def _chain(radius_from_entries, radius_from_sum, layer_norm_radius):
    return Chain(
        [
            Line("radius_from_entries", radius_from_entries, _free_entries, _norm),
            Line("radius_from_sum", radius_from_sum, _free_sum,
                 lambda total, sigma, gamma: abs(gamma) * math.sqrt(total) / sigma),
            Line("layer_norm_radius", layer_norm_radius, _free_width, lambda gamma, d: math.hypot(*[gamma] * d)),
        ],
        [Tie("total = sum (x_i - mean)^2", _tied_entries), Tie("total = d sigma^2", _tied_sum)],
    )


@pytest.fixture
def chain(radius_from_entries, radius_from_sum, layer_norm_radius):
    """The student's three lines."""
    return _chain(radius_from_entries, radius_from_sum, layer_norm_radius)


@pytest.mark.weight(3)
def test_entries(radius_from_entries, rng):
    """radius_from_entries is the norm of gamma (x - mean) / sigma, with the mean and the deviation that are given."""
    line = _chain(radius_from_entries, None, None).lines[0]
    check_line(line, rng, 8, {
        "this takes x's own mean and deviation; the letters mean and sigma are given, and need not be x's":
            lambda x, mean, sigma, gamma: abs(gamma) * math.sqrt(len(x)),
        "this takes x's own mean; the given one counts":
            lambda x, mean, sigma, gamma: _norm(x, x.mean().item(), sigma, gamma),
        "this takes x's own deviation; the given one counts":
            lambda x, mean, sigma, gamma: _norm(x, mean, x.std(correction=0).item(), gamma),
        "the sign of gamma survived, and a distance is not negative":
            lambda x, mean, sigma, gamma: _norm(x, mean, sigma, gamma) * math.copysign(1, gamma),
        "the mean is not subtracted": lambda x, mean, sigma, gamma: _norm(x, 0.0, sigma, gamma),
        "it is not divided by sigma": lambda x, mean, sigma, gamma: _norm(x, mean, 1.0, gamma),
        "gamma is missing": lambda x, mean, sigma, gamma: _norm(x, mean, sigma, 1.0),
        "this is the square of the norm": lambda x, mean, sigma, gamma: _norm(x, mean, sigma, gamma) ** 2,
        "the roots of the squares are added up; the norm is the root of their sum":
            lambda x, mean, sigma, gamma: (gamma * (x - mean) / sigma).abs().sum().item(),
    }, **CLOSE)


@pytest.mark.weight(3)
def test_sum(radius_from_sum, rng):
    """radius_from_sum is |gamma| sqrt(total) / sigma, at any total and sigma."""
    line = _chain(None, radius_from_sum, None).lines[1]
    check_line(line, rng, 8, {
        "the sign of gamma survived, and a distance is not negative":
            lambda total, sigma, gamma: gamma * math.sqrt(total) / sigma,
        "this is the square of the norm": lambda total, sigma, gamma: gamma**2 * total / sigma**2,
        "the root of total is missing": lambda total, sigma, gamma: abs(gamma) * total / sigma,
        "sigma is left out": lambda total, sigma, gamma: abs(gamma) * math.sqrt(total),
        "gamma is left out": lambda total, sigma, gamma: math.sqrt(total) / sigma,
        "sigma is squared, and it left the root": lambda total, sigma, gamma: abs(gamma) * math.sqrt(total) / sigma**2,
        "gamma is squared": lambda total, sigma, gamma: gamma**2 * math.sqrt(total) / sigma,
    }, **CLOSE)


@pytest.mark.weight(3)
def test_radius(layer_norm_radius, rng):
    """layer_norm_radius is |gamma| sqrt(d), for gains of either sign and several widths."""
    line = _chain(None, None, layer_norm_radius).lines[2]
    check_line(line, rng, 12, {
        "the sign of gamma survived, and a distance is not negative (the root of gamma^2 is |gamma|)":
            lambda gamma, d: gamma * math.sqrt(d),
        "that is the unbiased variance, division by d - 1; here it is "
        "d": lambda gamma, d: abs(gamma) * math.sqrt(d - 1),
        "the norm of d entries of size |gamma| grows with sqrt(d)": lambda gamma, d: abs(gamma) * d,
        "the width d is missing; only the mean square of the entries is gamma^2": lambda gamma, d: abs(gamma),
        "this is the square of the norm": lambda gamma, d: gamma**2 * d,
        "gamma is missing": lambda gamma, d: math.sqrt(d),
        "gamma is squared": lambda gamma, d: gamma**2 * math.sqrt(d),
    }, **CLOSE)


@pytest.mark.weight(2)
def test_entries_give_their_sum(chain, rng):
    """The line in entries gives the line in their sum, where total = sum (x_i - mean)^2."""
    check_tie(chain, 0, rng, 6, **CLOSE)


@pytest.mark.weight(2)
def test_sum_gives_the_radius(chain, rng):
    """The line in the sum gives the radius, where total = d sigma^2."""
    check_tie(chain, 1, rng, 6, **CLOSE)


def test_edges(radius_from_entries, radius_from_sum, layer_norm_radius, rng):
    """gamma = 0, a total of 0, entries equal to the mean, tiny and large deviations, d = 2: all are plain numbers."""
    x = torch.randn(5, generator=rng, dtype=F64)
    for value, what in (
        (radius_from_entries(x, 0.4, 1.3, 0.0), "radius_from_entries with gamma = 0"),
        (radius_from_entries(torch.full((4,), 2.0, dtype=F64), 2.0, 1.3, -0.7), "radius_from_entries with x = mean"),
        (radius_from_sum(0.0, 1.3, -0.7), "radius_from_sum with total = 0"),
        (radius_from_sum(4.0, 1.3, 0.0), "radius_from_sum with gamma = 0"),
        (layer_norm_radius(0.0, 9), "layer_norm_radius with gamma = 0"),
    ):
        same(number(value, what), 0.0, what, atol=1e-12)
    for scale in (1e-7, 1e6):
        same(number(radius_from_entries(scale * x, 0.0, scale, -1.4), "radius_from_entries"), _norm(x, 0.0, 1.0, 1.4),
             f"radius_from_entries at entries and a deviation of {scale:g}", rtol=1e-6)
        same(number(radius_from_sum(scale**2, scale, -1.4), "radius_from_sum"), 1.4,
             f"radius_from_sum at a deviation of {scale:g}", rtol=1e-6)
    same(number(layer_norm_radius(-1.5, 2), "layer_norm_radius"), 1.5 * math.sqrt(2), "layer_norm_radius(-1.5, 2)")


def test_layer_norm_lies_on_the_sphere(chain, reference, rng):
    """With x's own mean and deviation all three lines are the norm of layer norm's output with eps = 0, less beta."""
    entries, summed, radius = (line.function for line in chain.lines)
    for d, gamma in ((2, 0.8), (7, -1.9), (64, 0.4)):
        x = 3 * torch.randn(d, generator=rng, dtype=F64) + 5
        one = torch.ones(d, dtype=F64)
        expected = reference.layer_norm(x, gamma * one, 0 * one, 0.0).norm().item()
        mean, sigma = x.mean().item(), x.std(correction=0).item()
        for got, name in ((entries(x, mean, sigma, gamma), "radius_from_entries"),
                          (summed((x - mean).square().sum().item(), sigma, gamma), "radius_from_sum"),
                          (radius(gamma, d), "layer_norm_radius")):
            same(number(got, name), expected, f"{name} at d = {d}, gamma = {gamma} and x's own mean and deviation",
                 rtol=1e-6)


@pytest.mark.parametrize("kind", ["ints", "0-dim tensors"])
def test_other_numbers(chain, rng, kind):
    """Letters are numbers of any kind: ints and 0-dim tensors as well as floats."""
    def given(value):
        return value if kind == "ints" else torch.tensor(float(value), dtype=F64)

    entries, summed, radius = (line.function for line in chain.lines)
    x = torch.randn(6, generator=rng, dtype=F64)
    same(number(entries(x, given(1), given(2), given(-3)), "radius_from_entries"), _norm(x, 1, 2, 3),
         f"radius_from_entries with letters as {kind}", rtol=1e-6)
    same(number(summed(given(9), given(2), given(-3)), "radius_from_sum"), 4.5, f"radius_from_sum with letters as "
         f"{kind}",
         rtol=1e-6)
    same(number(radius(given(-3), 4), "layer_norm_radius"), 6.0, f"layer_norm_radius with gamma as {kind}", rtol=1e-6)


def test_float32(radius_from_entries, rng):
    """x in float32 gives the same line, to the precision of float32; the input is not changed."""
    x = torch.randn(8, generator=rng)
    before = x.clone()
    same(number(radius_from_entries(x, 0.3, 0.7, -0.9), "radius_from_entries"), _norm(x, 0.3, 0.7, 0.9),
         "radius_from_entries for float32", rtol=1e-3)
    check(torch.equal(x, before), "radius_from_entries has changed x in place")
