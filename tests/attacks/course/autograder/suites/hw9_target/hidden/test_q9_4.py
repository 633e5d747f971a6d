"""Hidden checks of q9_4. MARK-OF-THE-HIDDEN-SUITE"""

import torch

from course_utils.checking.compare import number, same


def test_values(describe, reference, rng):
    """Any numbers are described."""
    for length in (2, 5):
        values = torch.randn(length, generator=rng, dtype=torch.float64).tolist()
        same(describe(values), reference.describe(values), "the description")


def test_mean(describe, rng):
    """The mean is the mean."""
    values = (torch.rand(7, generator=rng, dtype=torch.float64) + 1).tolist()
    got = describe(values)
    same(number(got["mean"], "the mean"), sum(values) / 7, "the mean")
    same(got["mean"], sum(values) / 7, "the mean")


def test_trend(describe, rng):
    """The trend compares the last number with the first."""
    start = torch.randn(1, generator=rng, dtype=torch.float64).item()
    for step, trend in ((0.5, "rising"), (-0.5, "falling"), (0.0, "flat")):
        same(describe([start, 7.0, start + step])["trend"], trend, "the trend")
