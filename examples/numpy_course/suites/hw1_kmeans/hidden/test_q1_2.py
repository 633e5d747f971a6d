"""Hidden suite of q1_2: update."""

import numpy as np
import pytest

from course_utils.checking.compare import array, check, same


def _labels(rng, n, k, empty):
    return rng.choice([label for label in range(k) if label not in empty], size=n)


@pytest.mark.parametrize("n, k, d, empty", [(1, 1, 1, ()), (60, 4, 2, ()), (30, 6, 3, (0, 5)), (5, 9, 4, (1, 2, 8))])
def test_values(update, reference, rng, n, k, d, empty):
    """Centres go to the mean of their points, and stay where there are none."""
    points, labels, centers = rng.normal(size=(n, d)), _labels(rng, n, k, empty), rng.normal(size=(k, d))
    new = array(update(points, labels, centers), "the new centres", shape=(k, d), dtype="float64")
    same(new, reference.update(points, labels, centers), "the new centres")


def test_no_points_at_all(update, rng):
    """Without points every centre stays."""
    centers = rng.normal(size=(3, 2))
    same(update(np.zeros((0, 2)), np.zeros(0, dtype=int), centers), centers, "the new centres")


@pytest.mark.integration
def test_never_worse(assign, update, rng):
    """With your own `assign`, no round of the two steps makes the mean squared distance larger."""
    points = np.concatenate([rng.normal(middle, 1.0, size=(40, 2)) for middle in (-3.0, 0.0, 3.0)])
    centers, before = points[:4].copy(), np.inf
    for _ in range(5):
        labels = array(assign(points, centers), "the labels", shape=(120,))
        cost = ((points - centers[labels]) ** 2).sum(1).mean()
        check(cost <= before * (1 + 1e-12), f"the mean squared distance grew from {before:.4g} to {cost:.4g}")
        centers, before = array(update(points, labels, centers), "the new centres", shape=(4, 2)), cost
