"""Hidden checks of q1_8: dot_mean, dot_variance, unit_scale and the lines of the derivation."""

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


def _discrete(rng, d, outcomes=3):
    """Laws of d entries: values [d, outcomes] with chances [d, outcomes]; every entry has its own."""
    values = 2 * torch.randn(d, outcomes, generator=rng, dtype=F64) + 0.5
    return values, torch.rand(d, outcomes, generator=rng, dtype=F64).add(0.1).softmax(-1)


def _raw(law, power):
    values, chances = law
    return (chances * values**power).sum(-1)  # [d]


def _enumerated(q_law, k_law):
    """Var(q . k) over all outcomes, by folding the law of the sum with the law of one product after another."""
    sums, weights = torch.zeros(1, dtype=F64), torch.ones(1, dtype=F64)
    for values_q, chances_q, values_k, chances_k in zip(*q_law, *k_law, strict=True):
        products, chances = torch.outer(values_q, values_k).flatten(), torch.outer(chances_q, chances_k).flatten()
        sums = (sums[:, None] + products).flatten()
        weights = (weights[:, None] * chances).flatten()
    mean = (weights * sums).sum()
    return float((weights * (sums - mean) ** 2).sum())


def _wrong_lines(mq, vq, mk, vk):
    """What known misunderstandings make of a line, in means and variances."""
    right = (vq * vk + vq * mk**2 + mq**2 * vk).sum().item()
    dot = (mq @ mk).item()
    return {
        "the products of the means are not subtracted": ((vq + mq**2) * (vk + mk**2)).sum().item(),
        "the square of the whole mean is subtracted, and it has cross terms that the sum of E[q_i^2] E[k_i^2] has not":
            ((vq + mq**2) * (vk + mk**2)).sum().item() - dot**2,
        "that is E[(q . k)^2]: the square of the mean is still in it": right + dot**2,
        "q is held fixed: its own variance never moves the mean given q": (vq * vk + mq**2 * vk).sum().item(),
        "k is held fixed: its own variance never moves the mean given k": (vq * vk + vq * mk**2).sum().item(),
        "the variances are multiplied, which is right only for means of 0": (vq * vk).sum().item(),
        "the term with both variances is missing": (vq * mk**2 + mq**2 * vk).sum().item(),
        "means and variances have changed places at one factor": (vq * vk + vq * mq**2 + mk**2 * vk).sum().item(),
        "the letters of k are not used": (vq * vq + 2 * vq * mq**2).sum().item(),
        "the letters of q are not used": (vk * vk + 2 * vk * mk**2).sum().item(),
    }


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
def test_moments_of_any_laws(variance_from_moments, rng):
    """The line in raw moments is the variance over all outcomes of discrete entries, each with a law of its own."""
    for d, outcomes in ((1, 3), (2, 4), (4, 2), (5, 2)):
        q, k = _discrete(rng, d, outcomes), _discrete(rng, d, outcomes)
        q1, q2, k1, k2 = _raw(q, 1), _raw(q, 2), _raw(k, 1), _raw(k, 2)
        got = number(variance_from_moments(q1, q2, k1, k2), "variance_from_moments")
        same_or_because(got, _enumerated(q, k), f"variance_from_moments at d = {d}",
                        _wrong_lines(q1, q2 - q1**2, k1, k2 - k1**2), rtol=1e-6)


@pytest.mark.weight(2)
def test_means_and_variances_of_any_laws(variance_from_means, rng):
    """The line in means and variances is the variance over all outcomes of discrete entries."""
    for d, outcomes in ((1, 3), (2, 4), (4, 2), (5, 2)):
        q, k = _discrete(rng, d, outcomes), _discrete(rng, d, outcomes)
        mq, mk = _raw(q, 1), _raw(k, 1)
        letters = mq, _raw(q, 2) - mq**2, mk, _raw(k, 2) - mk**2
        same_or_because(number(variance_from_means(*letters), "variance_from_means"), _enumerated(q, k),
                        f"variance_from_means at d = {d}", _wrong_lines(*letters), rtol=1e-6)


def test_lines_at_special_letters(variance_from_moments, variance_from_means, rng):
    """Constant entries, entries of mean 0 and large means are right in both lines as well."""
    for d in (1, 4):
        mq, mk = (3 * torch.randn(d, generator=rng, dtype=F64) for _ in range(2))
        vq, vk = (0.3 + torch.rand(d, generator=rng, dtype=F64) for _ in range(2))
        zero = torch.zeros(d, dtype=F64)
        cases = {
            "q constant": (mq, zero, mk, vk, (mq**2 * vk).sum()), "k constant": (mq, vq, mk, zero, (mk**2 * vq).sum()),
            "both constant": (mq, zero, mk, zero, zero.sum()), "means of 0": (zero, vq, zero, vk, (vq * vk).sum()),
            "q of mean 0": (zero, vq, mk, vk, (vq * (vk + mk**2)).sum()),
        }
        for name, (a, b, c, e, expected) in cases.items():
            size = {"rtol": 1e-6, "atol": 1e-6 * float(1 + (a**2 + b) @ (c**2 + e))}
            got = number(variance_from_moments(a, b + a**2, c, e + c**2), "variance_from_moments")
            same(got, expected.item(), f"variance_from_moments with {name}", **size)
            got = number(variance_from_means(a, b, c, e), "variance_from_means")
            same(got, expected.item(), f"variance_from_means with {name}", **size)


@pytest.mark.weight(2)
def test_lines_meet(variance_from_moments, variance_from_means, dot_variance, rng):
    """A line gives the next one where their letters are tied: the derivation leads from its start to its end."""
    for d in (2, 5):
        mq, mk = (1.5 * torch.randn(d, generator=rng, dtype=F64) + 0.4 for _ in range(2))
        vq, vk = (0.3 + torch.rand(d, generator=rng, dtype=F64) for _ in range(2))
        first = number(variance_from_moments(mq, vq + mq**2, mk, vk + mk**2), "variance_from_moments")
        second = number(variance_from_means(mq, vq, mk, vk), "variance_from_means")
        same(second, first, "variance_from_means, against variance_from_moments where q2 = vq + mq^2", rtol=1e-6)
        mu, sigma = _draw(rng, d)
        v = torch.full((d,), sigma**2, dtype=F64)
        second, third = number(variance_from_means(mu, v, mu, v), "variance_from_means"), dot_variance(mu, sigma)
        same(number(third, "dot_variance"), second, "dot_variance, against variance_from_means at one mean and one "
             "variance", rtol=1e-6)


def test_float32(dot_mean, dot_variance, variance_from_moments, variance_from_means, rng):
    """float32 letters give the same numbers, to the precision of float32."""
    mu, sigma = _draw(rng, 5)
    mean, variance = _moments(mu, sigma)
    v = torch.full((5,), sigma**2)
    mu32 = mu.float()
    same(number(dot_mean(mu32, sigma), "dot_mean"), mean, "dot_mean", rtol=1e-4)
    same(number(dot_variance(mu32, sigma), "dot_variance"), variance, "dot_variance", rtol=1e-3)
    square = v + mu32**2
    same(number(variance_from_moments(mu32, square, mu32, square), "variance_from_moments"), variance,
         "variance_from_moments", rtol=1e-3, atol=1e-5 * float(square @ square))
    same(number(variance_from_means(mu32, v, mu32, v), "variance_from_means"), variance, "variance_from_means",
         rtol=1e-3)
