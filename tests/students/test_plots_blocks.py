"""The pictures that homework 3 adds: small panels, and points on a sphere."""

import pytest
import torch

from course_utils import plots

DRAWN = {
    "curve_grid": lambda alt: plots.curve_grid(
        [1, 2], {name: {"sick": [1, 2], "healthy": torch.ones(2)} for name in "abcde"}, alt=alt
    ),
    "one panel": lambda alt: plots.curve_grid([1, 2], {"a": {"sick": [1, 2]}}, alt=alt),
    "sphere": lambda alt: plots.sphere({"in": torch.randn(5, 3), "out": torch.eye(3)}, 1.0, (1, 1, 1), alt=alt),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_they_are_drawn_and_never_without_alt_text(kind):
    assert DRAWN[kind]("a picture").png.startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="alt text"):
        DRAWN[kind](" ")
