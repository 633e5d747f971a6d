"""Scaled dot-product attention as a diagram: what meets what, and in which shape."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course_utils.notebook.palette import SERIES
from course_utils.notebook.picture import Picture, styled

STEPS = (  # name, place, shape that comes out
    ("q", 0.0, 2.0, "[B, T, D]"),
    ("k", 0.0, 1.0, "[B, S, D]"),
    ("v", 0.0, 0.0, "[B, S, Dv]"),
    ("dot products\nq k$^T$", 2.0, 1.5, "[B, T, S]"),
    ("times\n1/$\\sqrt{D}$", 4.0, 1.5, "[B, T, S]"),
    ("blocked:\n$-\\infty$", 6.0, 1.5, "[B, T, S]"),
    ("softmax\nover keys", 8.0, 1.5, "weights [B, T, S]"),
    ("weights\ntimes v", 10.0, 0.75, "out [B, T, Dv]"),
)
ARROWS = ((0, 3), (1, 3), (3, 4), (4, 5), (5, 6), (6, 7), (2, 7))
HALF_WIDTH, HALF_HEIGHT = 0.72, 0.33


@styled
def attention_diagram() -> Picture:
    """The steps of attention from left to right, each with the shape that comes out of it."""
    figure = Figure(figsize=(9.5, 3.1), layout="constrained")
    axes = figure.subplots()
    for name, x, y, shape in STEPS:
        _box(axes, name, x, y, shape, SERIES[0] if len(name) == 1 else SERIES[1])
    for start, end in ARROWS:
        (_, x0, y0, _), (_, x1, y1, _) = STEPS[start], STEPS[end]
        axes.annotate("", (x1 - HALF_WIDTH, y1), (x0 + HALF_WIDTH, y0), arrowprops={"arrowstyle": "->", "color": "0.4"})
    axes.set(xlim=(-0.9, 10.9), ylim=(-0.85, 2.6))
    axes.axis("off")
    return Picture(figure, "Attention from left to right: queries and keys meet in dot products, these are scaled, "
                   "blocked where a mask says so, and turned into weights by a softmax over the keys; the weights "
                   "then average the values.")


def _box(axes: Axes, name: str, x: float, y: float, shape: str, color: str) -> None:
    """A box with its name in it and the shape of what comes out below it."""
    box = FancyBboxPatch((x - HALF_WIDTH, y - HALF_HEIGHT), 2 * HALF_WIDTH, 2 * HALF_HEIGHT, facecolor="white",
                         edgecolor=color, linewidth=2, boxstyle="round,pad=0,rounding_size=0.1")
    axes.add_patch(box)
    axes.text(x, y, name, ha="center", va="center", fontsize=11)
    axes.text(x, y - HALF_HEIGHT - 0.06, shape, ha="center", va="top", fontsize=9, color="0.3")
