"""Public checks of q1_1: assign."""

import numpy as np

from course_utils.checking.compare import array, check, same


def test_worked_numbers(assign):
    """The points (0, 0) and (3, 1) are nearest to the centres 0 and 1."""
    labels = assign(np.array([[0.0, 0.0], [3.0, 1.0]]), np.array([[1.0, 0.0], [4.0, 0.0]]))
    same(labels, np.array([0, 1]), "the labels", dtype=False)


def test_whole_numbers(assign, rng):
    """Ten points and three centres give ten whole numbers from 0 to 2."""
    labels = array(assign(rng.normal(size=(10, 4)), rng.normal(size=(3, 4))), "the labels", shape=(10,))
    check(labels.dtype.kind in "iu", f"the labels are {labels.dtype}, expected whole numbers")
    check(((labels >= 0) & (labels < 3)).all(), "a label is not 0, 1 or 2")


def test_a_tie(assign):
    """Of two centres that are equally near, the first one counts."""
    labels = assign(np.array([[0.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    same(labels, np.array([0]), "the labels", dtype=False)


def _data(n, k, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(k, d))


def probe_square(assign):
    return assign(*_data(7, 7, 3, 1))


def probe_many(assign):
    return assign(*_data(40, 5, 3, 2))


def probe_long_vectors(assign):
    return assign(*_data(30, 4, 9, 3))


def probe_far(assign):
    points, centers = _data(20, 4, 2, 4)
    return assign(10 * points, centers)
