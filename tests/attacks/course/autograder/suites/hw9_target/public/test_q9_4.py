"""Public checks of q9_4."""

from course_utils.checking.compare import same


def test_three_numbers(describe):
    """1, 2, 6 are three rising numbers with mean 3."""
    same(describe([1.0, 2.0, 6.0]), {"count": 3, "mean": 3.0, "trend": "rising"}, "the description")


def probe_describe(describe):
    return describe([4.0, 1.0, 0.5])
