"""The plots of the notebooks: readable sizes, colours for every kind of vision, and always an alt text.

Each function draws, shows the picture in the running cell, and returns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.notebook.diagrams import diagram
from course_utils.notebook.gallery import curve_grid, images, sphere, token_tables
from course_utils.notebook.palette import POINTS, ink
from course_utils.notebook.picture import Picture, array, legend, styled

__all__ = ["bars", "curve_grid", "curves", "diagram", "heatmap", "heatmaps", "images", "scatter_with_curve"]
__all__ += ["sphere", "token_tables"]

MARKERS = "osD^vPX*"
MOST_TICKS = 24  # more labels than this do not fit beside a heat map
FEW_POINTS = 8  # so many fit below a panel
LONGEST = 60  # letters of all labels below a panel, side by side
MOST_NUMBERS = 80  # cells up to which a heat map carries its numbers


@styled
def heatmap(
    weights: Any,
    rows: Sequence[Any] | None = None,
    cols: Sequence[Any] | None = None,
    title: str = "",
    *,
    alt: str,
    xlabel: str = "keys",
    ylabel: str = "queries",
    numbers: bool | None = None,
    vmin: float | None = 0.0,
    vmax: float | None = None,
) -> Picture:
    """A matrix [rows, cols] as colours, such as attention weights; small ones carry their numbers."""
    matrix = array(weights)
    size = (min(1.8 + 0.45 * matrix.shape[1], 9.0), min(1.4 + 0.4 * matrix.shape[0], 8.0))
    figure = Figure(figsize=(max(size[0], 4.2), max(size[1], 2.6)), layout="constrained")
    axes = figure.subplots()
    image = _draw_matrix(axes, matrix, rows, cols, numbers, vmin, vmax)
    figure.colorbar(image, ax=axes)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return Picture(figure, alt)


@styled
def heatmaps(
    panels: Mapping[str, Any],
    rows: Sequence[Any] | None = None,
    cols: Sequence[Any] | None = None,
    title: str = "",
    *,
    alt: str,
    xlabel: str | Sequence[str] = "keys",
    ylabel: str | Sequence[str] = "queries",
    numbers: bool | None = False,
    vmin: float | None = 0.0,
    vmax: float | None = None,
    blank_zeros: bool = False,
) -> Picture:
    """A row of matrices, each under its name, all on one colour scale; `blank_zeros` leaves exact zeros white.

    The labels are one for all panels, or one for each.
    """
    matrices = {name: array(panel) for name, panel in panels.items()}
    vmin = min(m.min() for m in matrices.values()) if vmin is None else vmin
    vmax = max(m.max() for m in matrices.values()) if vmax is None else vmax
    figure = Figure(figsize=(min(3.1 * len(matrices) + 0.8, 12.0), 3.3), layout="constrained")
    grid = figure.subplots(1, len(matrices), squeeze=False)[0]
    below = [xlabel] * len(matrices) if isinstance(xlabel, str) else xlabel
    beside = [ylabel, *[""] * (len(matrices) - 1)] if isinstance(ylabel, str) else ylabel
    for axes, (name, matrix), x, y in zip(grid, matrices.items(), below, beside, strict=True):
        image = _draw_matrix(axes, matrix, rows, cols, numbers, vmin, vmax, blank_zeros)
        axes.set(title=name, xlabel=x, ylabel=y)
    figure.colorbar(image, ax=list(grid))
    figure.suptitle(title)
    return Picture(figure, alt)


@styled
def curves(
    x: Any,
    ys: Mapping[str, Any],
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    *,
    alt: str,
    logx: bool = False,
    logy: bool = False,
    marks: bool = False,
    overlap: bool = False,
) -> Picture:
    """Lines over a common x, one per label; `marks` puts a symbol on every point.

    `overlap` draws the first ones wider, so that they are seen where a later one lies on them.
    """
    figure, axes = _panel(xlabel, ylabel, title)
    for i, (label, y) in enumerate(ys.items()):
        axes.plot(
            array(x),
            array(y),
            label=label,
            marker=MARKERS[i % len(MARKERS)] if marks else None,
            linestyle=("-", "--", "-.", ":")[i % 4],
            **_size(i, len(ys), overlap),
        )
    axes.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    if logx and marks:
        _tick_the_points(axes, array(x))
    legend(axes, ys)
    return Picture(figure, alt)


@styled
def bars(
    labels: Sequence[Any],
    values: Any,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    *,
    alt: str,
    logy: bool = False,
    numbers: str = "",
) -> Picture:
    """Bars over labels: one series, or a mapping from names to series, side by side; `numbers` such as ".3f" on top."""
    series = values if isinstance(values, Mapping) else {"": values}
    width, places = 0.8 / len(series), np.arange(len(labels))
    figure, axes = _panel(xlabel, ylabel, title)
    for i, (name, heights) in enumerate(series.items()):
        drawn = axes.bar(
            places + (i - (len(series) - 1) / 2) * width,
            array(heights),
            width,
            label=name,
            hatch=("", "//", "..", "xx")[i % 4],
            edgecolor="white",
        )
        if numbers:
            axes.bar_label(drawn, [format(height, numbers) for height in array(heights)], fontsize=9)
    axes.set_xticks(places, [str(label) for label in labels])
    if sum(2 + max(map(len, str(label).split("\n"))) for label in labels) > LONGEST:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yscale("log" if logy else "linear")
    if any(series):
        figure.legend(loc="outside right upper")  # inside, it would cover a bar
    return Picture(figure, alt)


@styled
def scatter_with_curve(
    x: Any,
    y: Any,
    curve_x: Any,
    curves: Mapping[str, Any],
    xlabel: str = "x",
    ylabel: str = "y",
    title: str = "",
    *,
    alt: str,
    points: str = "data",
    logx: bool = False,
    logy: bool = False,
    overlap: bool = False,
) -> Picture:
    """Points and one or more curves through them, as in a regression; `overlap` as in `curves`."""
    figure, axes = _panel(xlabel, ylabel, title)
    axes.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    axes.scatter(array(x), array(y), s=22, color=POINTS, alpha=0.7, label=points)
    for i, (label, values) in enumerate(curves.items()):
        style = ("-", "--", "-.", ":")[i % 4]
        axes.plot(array(curve_x), array(values), label=label, linestyle=style, **_size(i, len(curves), overlap))
    axes.legend()
    return Picture(figure, alt)


def _size(i: int, n: int, overlap: bool) -> dict[str, Any]:
    """The width of the i-th of n lines, and of its marks: as usual, or the first the widest."""
    wider = n - 1 - i if overlap else 0
    return {"linewidth": 2.0 + 1.8 * wider, "markersize": 6.0 + 2.5 * wider}


def _panel(xlabel: str, ylabel: str, title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.grid(True)
    axes.set_axisbelow(True)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return figure, axes


def _tick_the_points(axes: Axes, x: np.ndarray) -> None:
    """A few points on a logarithmic axis: 4, 8, 16 below them, and not 4 x 10^0."""
    if len(x) <= FEW_POINTS:
        axes.set_xticks(x, [f"{place:g}" for place in x])
        axes.set_xticks([], minor=True)


def _draw_matrix(
    axes: Axes,
    matrix: np.ndarray,
    rows: Sequence[Any] | None,
    cols: Sequence[Any] | None,
    numbers: bool | None,
    vmin: float | None,
    vmax: float | None,
    blank_zeros: bool = False,
) -> Any:
    blank = (matrix == 0) & blank_zeros
    image = axes.imshow(np.ma.masked_array(matrix, blank), vmin=vmin, vmax=vmax, aspect="auto")
    axes.locator_params(integer=True)
    if rows is not None and len(rows) <= MOST_TICKS:
        axes.set_yticks(range(len(rows)), [str(label) for label in rows])
    if cols is not None and len(cols) <= MOST_TICKS:
        axes.set_xticks(range(len(cols)), [str(label) for label in cols])
        if max(len(str(label)) for label in cols) > 3:
            axes.tick_params(axis="x", rotation=45)
    if numbers if numbers is not None else matrix.size <= MOST_NUMBERS:
        digits = 0 if (matrix == matrix.round()).all() and abs(matrix).max() > 1 else 2
        for (i, j), value in np.ndenumerate(matrix):
            colour = "black" if blank[i, j] else ink([*image.cmap(image.norm(value))])
            told = f"{value:.{digits}f}" if value else "0"  # 0.00 is a small number
            axes.text(j, i, told, ha="center", va="center", fontsize=9, color=colour)
    return image
