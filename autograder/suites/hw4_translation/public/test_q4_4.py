"""Public checks of q4_4: noam_rate."""

import math

from course_utils.checking.compare import check, number, same


def _rate(noam_rate, step, d_model, warmup):
    return number(noam_rate(step, d_model, warmup), f"noam_rate({step}, {d_model}, {warmup})")


def test_worked_numbers(noam_rate):
    """With d_model = 64 and warmup = 100: 1.25e-4 at step 1, 0.0125 at the peak, 0.00625 at step 400."""
    # keeps: rate
    for step, expected in ((1, 1.25e-4), (50, 6.25e-3), (100, 1.25e-2), (400, 6.25e-3)):
        same(_rate(noam_rate, step, 64, 100), expected, f"noam_rate({step}, 64, 100)")


def test_step_zero(noam_rate):
    """At step 0 the rate is finite."""
    # keeps: zero
    rate = noam_rate(0, 64, 100)
    check(math.isfinite(_rate(noam_rate, 0, 64, 100)), f"noam_rate(0, 64, 100) is {rate}")


def test_peak(noam_rate):
    """The rate rises until step `warmup` and falls after it."""
    # keeps: rate
    rates = [_rate(noam_rate, step, 32, 20) for step in range(1, 60)]
    top = rates.index(max(rates)) + 1
    check(top == 20, f"with warmup = 20 the rate is highest at step {top}")


def probe_rising(noam_rate):
    return [noam_rate(step, 64, 100) for step in (1, 2, 50, 99)]


def probe_peak(noam_rate):
    return noam_rate(100, 64, 100)


def probe_falling(noam_rate):
    return [noam_rate(step, 64, 100) for step in (101, 200, 400, 10_000)]


def probe_width(noam_rate):
    return [noam_rate(30, d_model, 40) for d_model in (1, 4, 512)]


def probe_warmup(noam_rate):
    return [noam_rate(30, 16, warmup) for warmup in (1, 10, 4000)]


def probe_zero_is_finite(noam_rate):
    return math.isfinite(number(noam_rate(0, 64, 100), "the rate at step 0"))


def probe_zero_raises(noam_rate):
    noam_rate(0, 64, 100)
    return "fine"


def probe_published(noam_rate):
    return noam_rate(4000, 512, 4000)


def probe_is_positive(noam_rate):
    return [number(noam_rate(step, 64, 100), "the rate") > 0 for step in (1, 100, 1000)]
