"""Public checks of q1_2: update."""

import numpy as np

from course_utils.checking.compare import array, same

POINTS = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
CENTERS = np.array([[9.0, 9.0], [7.0, -7.0], [0.0, 1.0]])


def test_worked_numbers(update):
    """The means of (0, 0), (2, 0) and of (5, 5) are (1, 0) and (5, 5)."""
    new = array(update(POINTS, np.array([0, 0, 2]), CENTERS), "the new centres", shape=(3, 2), dtype="float64")
    same(new[[0, 2]], np.array([[1.0, 0.0], [5.0, 5.0]]), "the centres with points")


def test_an_empty_cluster_stays(update):
    """A centre that no point has chosen stays where it is."""
    new = array(update(POINTS, np.array([0, 0, 2]), CENTERS), "the new centres", shape=(3, 2))
    same(new[1], CENTERS[1], "the centre without points")


def _data(n, k, d, seed, empty=()):
    rng = np.random.default_rng(seed)
    left = [label for label in range(k) if label not in empty]
    return rng.normal(size=(n, d)), rng.choice(left, size=n), rng.normal(size=(k, d))


def probe_full(update):
    return update(*_data(30, 3, 2, 1))


def probe_uneven(update):
    points, labels, centers = _data(30, 3, 4, 2)
    labels[:20] = 0
    return update(points, labels, centers)


def probe_one_empty(update):
    return update(*_data(30, 4, 3, 3, empty=(2,)))


def probe_last_empty(update):
    return update(*_data(30, 5, 2, 4, empty=(3, 4)))
