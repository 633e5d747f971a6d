"""Public checks of q3_4: radius_from_entries, radius_from_sum and layer_norm_radius."""

import math

import torch

from course_utils.checking.chains import Chain, Line, Tie, check_tie
from course_utils.checking.compare import check, number, same

F64 = torch.float64
X = torch.tensor([0.7, -1.9, 2.4, 0.1, 3.3], dtype=F64)


def _entries(radius_from_entries, x, mean, sigma, gamma):
    return number(radius_from_entries(x, mean, sigma, gamma), "radius_from_entries")


def test_worked_numbers(layer_norm_radius):
    """At gamma = 2 and d = 9 every output lies at distance 6 from beta; at gamma = -2 too, at gamma = 0 at none."""
    # keeps: radius, never-negative, numbers
    same(number(layer_norm_radius(2.0, 9), "layer_norm_radius"), 6.0, "layer_norm_radius(2, 9)")
    got = number(layer_norm_radius(-2.0, 9), "layer_norm_radius")
    check(got >= 0, "layer_norm_radius(-2, 9) is negative: a distance is not")
    same(got, 6.0, "layer_norm_radius(-2, 9)")
    same(number(layer_norm_radius(0.0, 5), "layer_norm_radius"), 0.0, "layer_norm_radius(0, 5)")
    same(number(layer_norm_radius(1, 2), "layer_norm_radius"), math.sqrt(2), "layer_norm_radius(1, 2)")


def test_entries_by_hand(radius_from_entries):
    """x = (1, 3, 8), mean 2, sigma 0.5, gamma -2: the entries are (4, -4, -24), and the norm is sqrt(608)."""
    # keeps: from-entries, letters-count
    x = torch.tensor([1.0, 3.0, 8.0], dtype=F64)
    got = _entries(radius_from_entries, x, 2.0, 0.5, -2.0)
    own = [2 * math.sqrt(3), 2 * math.sqrt(2)]
    check(not any(math.isclose(got, value, rel_tol=1e-6) for value in own), f"radius_from_entries(x, 2, 0.5, -2) is "
          f"{got:.6g}: that is what x's own mean and deviation give, and not the given ones, 2 and 0.5")
    same(got, math.sqrt(608), "radius_from_entries((1, 3, 8), 2, 0.5, -2)")


def test_entries_elsewhere(radius_from_entries, rng):
    """The first line is the norm of gamma (x - mean) / sigma, for any x, mean, sigma > 0 and gamma."""
    # keeps: from-entries, letters-count, numbers, never-negative
    for d, mean, sigma, gamma in ((2, 0.0, 1.0, 1.0), (6, -3.0, 2.5, 0.4), (5, 1.5, 0.3, -1.2), (3, 0.2, 1.0, 0.0)):
        x = 2 * torch.randn(d, generator=rng, dtype=F64) + 1
        expected = math.sqrt(sum((gamma * (value - mean) / sigma) ** 2 for value in x.tolist()))
        same(_entries(radius_from_entries, x, mean, sigma, gamma), expected,
             f"radius_from_entries at d = {d}, mean = {mean}, sigma = {sigma}, gamma = {gamma}", rtol=1e-6)


def test_sum_by_hand(radius_from_sum):
    """total = 9, sigma = 0.5, gamma = -2: the distance is 12; and 0 where total or gamma is."""
    # keeps: from-sum, never-negative, numbers
    same(number(radius_from_sum(9.0, 0.5, -2.0), "radius_from_sum"), 12.0, "radius_from_sum(9, 0.5, -2)")
    same(number(radius_from_sum(2.0, 3.0, 0.6), "radius_from_sum"), 0.2 * math.sqrt(2), "radius_from_sum(2, 3, 0.6)")
    for total, gamma in ((0.0, 2.0), (5.0, 0.0)):
        same(number(radius_from_sum(total, 1.5, gamma), "radius_from_sum"), 0.0, f"radius_from_sum({total}, 1.5, "
             f"{gamma})")


def _chain(radius_from_entries, radius_from_sum, layer_norm_radius):
    def entries(rng):
        x = 3 * torch.randn(4, generator=rng, dtype=F64) + 1
        mean, sigma, gamma = (torch.rand(3, generator=rng, dtype=F64) + 0.2).tolist()
        total = (x - mean).square().sum().item()
        return ({"x": x, "mean": mean, "sigma": sigma, "gamma": -gamma},
                {"total": total, "sigma": sigma, "gamma": -gamma})

    def summed(rng):
        d = int(torch.randint(2, 100, (1,), generator=rng))
        sigma, gamma = (torch.rand(2, generator=rng, dtype=F64) + 0.2).tolist()
        return {"total": d * sigma**2, "sigma": sigma, "gamma": -gamma}, {"gamma": -gamma, "d": d}

    lines = [Line("radius_from_entries", radius_from_entries), Line("radius_from_sum", radius_from_sum),
             Line("layer_norm_radius", layer_norm_radius)]
    return Chain(lines, [Tie("total = sum (x_i - mean)^2", entries), Tie("total = d sigma^2", summed)])


def test_first_step(radius_from_entries, radius_from_sum, layer_norm_radius, rng):
    """radius_from_entries gives radius_from_sum where total is the sum of the squared distances."""
    # keeps: first-step
    check_tie(_chain(radius_from_entries, radius_from_sum, layer_norm_radius), 0, rng, rtol=1e-6)


def test_second_step(radius_from_entries, radius_from_sum, layer_norm_radius, rng):
    """radius_from_sum gives layer_norm_radius where total is d sigma^2."""
    # keeps: second-step
    check_tie(_chain(radius_from_entries, radius_from_sum, layer_norm_radius), 1, rng, rtol=1e-6)


def probe_radius(layer_norm_radius):
    return [number(layer_norm_radius(1.7, d), "the radius") for d in (2, 5, 16)]


def probe_radius_negative(layer_norm_radius):
    return number(layer_norm_radius(-0.6, 7), "the radius")


def probe_radius_zero(layer_norm_radius):
    return number(layer_norm_radius(0.0, 7), "the radius")


def probe_entries(radius_from_entries):
    return [number(radius_from_entries(X, mean, sigma, 1.7), "the line") for mean, sigma in ((0.3, 0.8), (-2.0, 3.1))]


def probe_entries_negative(radius_from_entries):
    return number(radius_from_entries(X, 0.3, 0.8, -1.7), "the line")


def probe_entries_tied(radius_from_entries):
    return number(radius_from_entries(X, X.mean().item(), X.std(correction=0).item(), 1.7), "the line")


def probe_entries_form(radius_from_entries):
    return list(torch.as_tensor(radius_from_entries(X, 0.3, 0.8, 1.7)).shape)


def probe_sum(radius_from_sum):
    return [number(radius_from_sum(total, sigma, 1.7), "the line") for total, sigma in ((9.0, 0.8), (2.0, 3.1))]


def probe_sum_negative(radius_from_sum):
    return number(radius_from_sum(9.0, 0.8, -1.7), "the line")


def probe_sum_small(radius_from_sum):
    return number(radius_from_sum(1e-8, 1e-4, 1.0), "the line")


def probe_sum_of_nothing(radius_from_sum):
    return number(radius_from_sum(0.0, 0.8, 1.7), "the line")


def probe_entries_small(radius_from_entries):
    return number(radius_from_entries(X * 1e-4, 0.0, 1e-4, 1.0), "the line")
