"""Hidden suite of q1_1: assign."""

import numpy as np
import pytest

from course_utils.checking.compare import array, same


@pytest.mark.parametrize("n, k, d", [(1, 1, 1), (50, 4, 2), (30, 30, 3), (200, 7, 10)])
def test_values(assign, reference, rng, n, k, d):
    """Every point gets the label of its nearest centre."""
    points, centers = 3 * rng.normal(size=(n, d)), rng.normal(size=(k, d))
    labels = array(assign(points, centers), "the labels", shape=(n,))
    same(labels, reference.assign(points, centers), "the labels", dtype=False)


def test_only_distances_count(assign, reference, rng):
    """Moving points and centres alike changes no label."""
    points, centers = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    shift = 10 * rng.normal(size=3)
    same(assign(points + shift, centers + shift), reference.assign(points, centers), "the labels", dtype=False)


def test_ties(assign):
    """Of equally near centres the first one counts."""
    centers = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    same(assign(np.zeros((3, 2)), centers), np.zeros(3, dtype=int), "the labels", dtype=False)


def test_no_points(assign):
    """No points have no labels."""
    array(assign(np.zeros((0, 2)), np.ones((3, 2))), "the labels", shape=(0,))
