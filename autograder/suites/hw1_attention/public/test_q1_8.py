"""Public checks of q1_8: dot_mean, dot_variance, unit_scale and the derivation's two other lines."""

import torch

from course_utils.checking.compare import check, number, same

F64 = torch.float64
MU, SIGMA = torch.tensor([1.0, -2.0, 0.5], dtype=F64), 0.5
Q = torch.tensor([[0.0, 2.0], [-1.0, 3.0], [1.0, 1.5]], dtype=F64)  # q_i is one of the two numbers in row i
K = torch.tensor([[2.0, -2.0], [0.5, 2.5], [-3.0, 1.0]], dtype=F64)
CHANCE = torch.tensor([0.5, 0.25, 0.7], dtype=F64)  # of the first number; the same for q and k


def _moments(values, power):
    """E[x_i^power] for entries x_i that are one of two numbers."""
    return CHANCE * values[:, 0] ** power + (1 - CHANCE) * values[:, 1] ** power


def _enumerated():
    """The variance of q . k, from all 64 outcomes."""
    mean = square = 0.0
    for outcome in range(64):
        sides = [outcome >> i & 1 for i in range(6)]  # which of its two numbers each entry takes
        chance, dot = 1.0, 0.0
        for i in range(3):
            q, k = sides[i], sides[i + 3]
            chance *= float((1 - CHANCE[i] if q else CHANCE[i]) * (1 - CHANCE[i] if k else CHANCE[i]))
            dot += float(Q[i, q] * K[i, k])
        mean, square = mean + chance * dot, square + chance * dot**2
    return square - mean**2


def test_mean_and_scale(dot_mean, unit_scale):
    """At mu = (1, -2, 0.5) the mean of q . k is 5.25, whatever sigma is; for width 64 the divisor is 8."""
    # keeps: mean, scale, numbers
    same(number(dot_mean(MU, SIGMA), "dot_mean"), 5.25, "dot_mean")
    same(number(dot_mean(MU, 2.0), "dot_mean"), 5.25, "dot_mean at sigma = 2")
    same(number(unit_scale(64), "unit_scale"), 8.0, "unit_scale(64)")
    same(number(unit_scale(2), "unit_scale"), 2**0.5, "unit_scale(2)")


def test_worked_variance(dot_variance):
    """At mu = (1, -1, 2) and sigma = 0.5 the variance is 3.1875; at mu = 0 and sigma = 1 it is d."""
    # keeps: variance, numbers
    same(number(dot_variance(torch.tensor([1.0, -1.0, 2.0], dtype=F64), 0.5), "dot_variance"), 3.1875, "dot_variance")
    same(number(dot_variance(torch.zeros(5, dtype=F64), 1.0), "dot_variance"), 5.0, "dot_variance at mu = 0, d = 5")


def test_variance_against_simulation(dot_variance, rng):
    """The variance agrees with 20,000 simulated dot products, to within five standard errors."""
    # keeps: variance
    q, k = (MU + SIGMA * torch.randn(20_000, 3, generator=rng, dtype=F64) for _ in range(2))
    dots = (q * k).sum(-1)
    squares = (dots - dots.mean()).square()
    seen, error = squares.mean().item(), squares.std().item() / len(dots) ** 0.5
    got = number(dot_variance(MU, SIGMA), "dot_variance")
    check(abs(got - seen) < 5 * error, f"dot_variance is {got:.4g}, but simulated dot products have variance "
          f"{seen:.4g} (standard error {error:.2g})")


def test_line_from_moments(variance_from_moments):
    """From raw moments: the variance over all 64 outcomes of three pairs of entries that take two values each."""
    # keeps: moments, not-normal, numbers
    got = number(variance_from_moments(_moments(Q, 1), _moments(Q, 2), _moments(K, 1), _moments(K, 2)),
                 "variance_from_moments")
    same(got, _enumerated(), "variance_from_moments")
    one = [torch.tensor([x], dtype=F64) for x in (1.0, 2.0, 3.0, 9.0)]
    same(number(variance_from_moments(*one), "variance_from_moments"), 9.0, "variance_from_moments at (1, 2, 3, 9)")


def test_line_from_means(variance_from_means):
    """From means and variances: the same variance over all 64 outcomes."""
    # keeps: means, not-normal, numbers
    mq, mk = _moments(Q, 1), _moments(K, 1)
    got = variance_from_means(mq, _moments(Q, 2) - mq**2, mk, _moments(K, 2) - mk**2)
    same(number(got, "variance_from_means"), _enumerated(), "variance_from_means")


def test_lines_meet_where_letters_are_tied(variance_from_moments, variance_from_means, dot_variance):
    """With q2 = vq + mq^2 the first line gives the second; with one mean and one variance, that the third."""
    # keeps: tied
    mq, mk = MU, torch.tensor([0.3, 1.5, -1.0], dtype=F64)
    vq, vk = torch.tensor([0.5, 2.0, 1.0], dtype=F64), torch.tensor([1.5, 0.2, 0.7], dtype=F64)
    first = number(variance_from_moments(mq, vq + mq**2, mk, vk + mk**2), "variance_from_moments")
    second = number(variance_from_means(mq, vq, mk, vk), "variance_from_means")
    same(first, second, "variance_from_moments, against variance_from_means")
    v = torch.full((3,), SIGMA**2, dtype=F64)
    same(number(variance_from_means(MU, v, MU, v), "variance_from_means"),
         number(dot_variance(MU, SIGMA), "dot_variance"), "variance_from_means, against dot_variance")


def _letters(d=4):
    g = torch.Generator().manual_seed(82)
    mq, mk = (torch.randn(d, generator=g, dtype=F64) + 0.3 for _ in range(2))
    vq, vk = (0.2 + torch.rand(d, generator=g, dtype=F64) for _ in range(2))
    return mq, vq, mk, vk


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


def probe_from_moments(variance_from_moments):
    mq, vq, mk, vk = _letters()
    return variance_from_moments(mq, vq + mq**2, mk, vk + mk**2)


def probe_from_moments_wide(variance_from_moments):
    mq, vq, mk, vk = _letters(7)
    return variance_from_moments(mq, vq + mq**2, mk, vk + mk**2)


def probe_from_moments_centred(variance_from_moments):
    mq, vq, mk, vk = _letters()
    return variance_from_moments(0 * mq, vq, 0 * mk, vk)


def probe_from_means(variance_from_means):
    return variance_from_means(*_letters())


def probe_from_means_wide(variance_from_means):
    return variance_from_means(*_letters(7))


def probe_from_means_centred(variance_from_means):
    mq, vq, mk, vk = _letters()
    return variance_from_means(0 * mq, vq, 0 * mk, vk)
