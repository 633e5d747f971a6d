"""A drawing of multi-head attention: the whole input goes to every head, through projections that are narrow."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.notebook.palette import SERIES
from course_utils.notebook.picture import Picture, styled

ALT = (
    "From left to right: the input X of width D; arrows from all of X to the query, key and value projections of "
    "each of "
    "three heads, D to D / H each; an attention per head; the three results side by side, width D again; W_o; the "
    "output."
)


@styled
def multi_head_diagram(n_heads: int = 3) -> Picture:
    """Draw the layer for a number of heads."""
    figure = Figure(figsize=(9.0, 1.2 + 1.1 * n_heads), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, 10), ylim=(0, n_heads))
    axes.axis("off")
    _box(axes, 0.6, n_heads / 2, 0.9, 0.8 * n_heads, "X\n[N, D]", "lightgrey")
    for h in range(n_heads):
        y, colour = n_heads - h - 0.5, SERIES[h % len(SERIES)]
        for name, offset in (("q", 0.26), ("k", 0.0), ("v", -0.26)):
            _arrow(axes, (1.05, y + offset), (1.9, y + offset))
            _box(axes, 2.75, y + offset, 1.7, 0.2, f"$W_{name}^{h}$: D to D/H", "white", colour, 9)
            _arrow(axes, (3.6, y + offset), (4.2, y + 0.3 * offset))
        _box(axes, 5.1, y, 1.8, 0.5, f"attention {h}\n[N, D/H]", "white", colour)
        _arrow(axes, (6.0, y), (6.7, y))
        _box(axes, 7.15, y, 0.9, 0.8, f"head {h}", "white", colour)
    _arrow(axes, (7.6, n_heads / 2), (8.2, n_heads / 2))
    _box(axes, 8.6, n_heads / 2, 0.8, 0.8, "$W_o$\nD to D", "lightgrey")
    _arrow(axes, (9.0, n_heads / 2), (9.4, n_heads / 2))
    axes.text(9.7, n_heads / 2, "out\n[N, D]", ha="center", va="center", fontsize=10)
    axes.set_title("Every head sees all of X; its projections are narrow")
    return Picture(figure, ALT)


def _box(
    axes: Axes,
    x: float,
    y: float,
    width: float,
    height: float,
    text: str,
    fill: str,
    edge: str = "black",
    size: int = 10,
) -> None:
    corner = (x - width / 2, y - height / 2)
    axes.add_patch(Rectangle(corner, width, height, facecolor=fill, edgecolor=edge, linewidth=1.5))
    axes.text(x, y, text, ha="center", va="center", fontsize=size)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "linewidth": 1.2})
