"""Hidden checks of q4_4: noam_rate, the schedule of Vaswani et al. (2017)."""

import math

import pytest
import torch

from course_utils.checking.compare import Wrong, check, number, same


def _rate(noam_rate, step, d_model, warmup):
    return number(noam_rate(step, d_model, warmup), f"noam_rate({step}, {d_model}, {warmup})")


def _formula(step, d_model, warmup):
    return math.exp(-0.5 * math.log(d_model) + min(-0.5 * math.log(step), math.log(step) - 1.5 * math.log(warmup)))


def _compare(noam_rate, step, d, warmup):
    rising, falling = step * warmup**-1.5, step**-0.5
    got, expected = _rate(noam_rate, step, d, warmup), _formula(step, d, warmup)
    causes = {
        "the factor d_model ** -0.5 is missing": min(rising, falling),
        "it is multiplied by sqrt(d_model) and not divided": d**0.5 * min(rising, falling),
        "it is divided by d_model and not by its root": min(rising, falling) / d,
        "max in the place of min": d**-0.5 * max(rising, falling),
        "there is no warm-up: the rate falls from the start": d**-0.5 * falling,
        "the rate never falls": d**-0.5 * rising,
        "the rate falls like one over the step, and not over its root": d**-0.5 * min(rising, warmup**0.5 / step),
        "the rate stays at its peak after the warm-up": d**-0.5 * min(rising, warmup**-0.5),
        "the warm-up is off: warmup ** -1.5, so that both curves meet at step = warmup":
            d**-0.5 * min(step / warmup, falling),
        "warmup ** -0.5 where warmup ** -1.5 belongs": d**-0.5 * min(step * warmup**-0.5, falling),
        "steps are counted from 1, and you add one more": _formula(step + 1, d, warmup),
        "the warm-up always has 4000 steps, whatever `warmup` is": _formula(step, d, 4000),
    }
    try:
        same(got, expected, f"noam_rate({step}, {d}, {warmup})", rtol=1e-5, atol=0)
    except Wrong as wrong:
        fits = [cause for cause, value in causes.items()
                if math.isclose(got, value, rel_tol=1e-4) and not math.isclose(expected, value, rel_tol=1e-4)]
        if len(fits) == 1:
            raise Wrong(wrong.plain, wrong.mistake, f"Likely cause: {fits[0]}.") from None
        raise


@pytest.mark.weight(3)
def test_formula(noam_rate, rng):
    """d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5), before and after the warm-up."""
    for _ in range(10):
        d, warmup = (int(torch.randint(2, 1000, (1,), generator=rng)) for _ in range(2))
        for step in (1, max(warmup // 2, 1), warmup, 3 * warmup, warmup + 1, 50 * warmup):
            _compare(noam_rate, step, d, warmup)


def test_published_sizes(noam_rate):
    """With d_model = 512 and 4000 steps of warm-up the peak is 7.0e-4, as published."""
    for step in (1, 100, 4000, 100_000):
        _compare(noam_rate, step, 512, 4000)


@pytest.mark.weight(2)
def test_rises_and_falls(noam_rate):
    """It rises in a straight line up to step `warmup`, where it is highest, then falls like 1 / sqrt(step)."""
    for warmup in (1, 2, 7, 40):
        rates = [_rate(noam_rate, step, 48, warmup) for step in range(1, 6 * warmup + 2)]
        top = rates.index(max(rates)) + 1
        check(top == warmup, f"with warmup = {warmup} the rate is highest at step {top}")
        for step in range(1, warmup + 1):
            same(rates[step - 1], rates[0] * step, f"the rate at step {step} of a warm-up of {warmup}, against {step} "
                 "times the first one", rtol=1e-5)
        same(rates[4 * warmup - 1], rates[warmup - 1] / 2, "the rate at four times the warm-up, against half the peak",
             rtol=1e-5)


@pytest.mark.weight(2)
def test_zero(noam_rate):
    """At step 0 the rate is a finite number, not negative and below the peak, for any width and warm-up."""
    for d, warmup in ((64, 100), (512, 4000), (3, 2)):
        rate = _rate(noam_rate, 0, d, warmup)
        check(math.isfinite(rate), f"noam_rate(0, {d}, {warmup}) is {rate}: 0 ** -0.5 has no value; what should the "
              "very first step get?")
        check(0 <= rate <= _formula(warmup, d, warmup) * (1 + 1e-6), f"noam_rate(0, {d}, {warmup}) is {rate}, above "
              "the peak or below zero")
