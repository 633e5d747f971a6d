"""Diagrams of models: named boxes, and arrows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course_utils.notebook.palette import BOXES, EDGE, SERIES
from course_utils.notebook.picture import Picture, styled

WIDTH, HEIGHT = 2.3, 0.62  # of a box, in units of the picture


@styled
def diagram(
    boxes: Mapping[str, tuple[float, float, str]],
    arrows: Sequence[tuple[str, str] | tuple[str, str, str]],
    title: str = "",
    *,
    alt: str,
    unit: float = 0.8,
) -> Picture:
    """Boxes by their text, each with the place of its centre and a kind; arrows from box to box, with a word or none.

    Kinds are data, layer, attention, norm and output. One unit of the picture is `unit` inches.
    """
    xs, ys = [x for x, _, _ in boxes.values()], [y for _, y, _ in boxes.values()]
    left, right = min(xs) - WIDTH / 2 - 0.3, max(xs) + WIDTH / 2 + 0.3
    low, high = min(ys) - HEIGHT, max(ys) + HEIGHT
    figure = Figure(figsize=(unit * (right - left), unit * (high - low) + 0.3), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", title=title)
    axes.axis("off")
    for text, (x, y, kind) in boxes.items():
        corner = (x - WIDTH / 2, y - HEIGHT / 2)
        shape = "round,pad=0.02,rounding_size=0.12"
        axes.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, shape, facecolor=BOXES[kind], edgecolor=EDGE))
        axes.text(x, y, text, ha="center", va="center", fontsize=9)
    for start, end, *word in arrows:
        (x0, y0, _), (x1, y1, _) = boxes[start], boxes[end]
        level = abs(y1 - y0) < HEIGHT
        dx, dy = (WIDTH / 2 if x1 > x0 else -WIDTH / 2, 0.0) if level else (0.0, HEIGHT / 2 if y1 > y0 else -HEIGHT / 2)
        style = {"arrowstyle": "->", "color": SERIES[0], "shrinkA": 2, "shrinkB": 2}
        axes.annotate("", (x1 - dx, y1 - dy), (x0 + dx, y0 + dy), arrowprops=style)
        for told in word:
            axes.text((x0 + x1) / 2 + 0.08, (y0 + y1) / 2 + 0.08, told, fontsize=8, color=SERIES[0])
    return Picture(figure, alt)
