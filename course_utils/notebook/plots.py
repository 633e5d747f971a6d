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
    xlabel: str = "keys",
    ylabel: str = "queries",
    numbers: bool | None = False,
    vmin: float | None = 0.0,
    vmax: float | None = None,
) -> Picture:
    """A row of matrices, each under its name, all on one colour scale."""
    matrices = {name: array(panel) for name, panel in panels.items()}
    vmin = min(m.min() for m in matrices.values()) if vmin is None else vmin
    vmax = max(m.max() for m in matrices.values()) if vmax is None else vmax
    figure = Figure(figsize=(min(3.1 * len(matrices) + 0.8, 12.0), 3.3), layout="constrained")
    grid = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axes, (name, matrix) in zip(grid, matrices.items(), strict=True):
        image = _draw_matrix(axes, matrix, rows, cols, numbers, vmin, vmax)
        axes.set(title=name, xlabel=xlabel, ylabel=ylabel if axes is grid[0] else "")
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
) -> Picture:
    """Lines over a common x, one per label; `marks` puts a symbol on every point."""
    figure, axes = _panel(xlabel, ylabel, title)
    for i, (label, y) in enumerate(ys.items()):
        axes.plot(
            array(x),
            array(y),
            label=label,
            marker=MARKERS[i % len(MARKERS)] if marks else None,
            linestyle=("-", "--", "-.", ":")[i % 4],
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
) -> Picture:
    """Bars over labels: one series, or a mapping from names to series, which stand side by side."""
    series = values if isinstance(values, Mapping) else {"": values}
    width, places = 0.8 / len(series), np.arange(len(labels))
    figure, axes = _panel(xlabel, ylabel, title)
    for i, (name, heights) in enumerate(series.items()):
        axes.bar(
            places + (i - (len(series) - 1) / 2) * width,
            array(heights),
            width,
            label=name,
            hatch=("", "//", "..", "xx")[i % 4],
            edgecolor="white",
        )
    axes.set_xticks(places, [str(label) for label in labels])
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
) -> Picture:
    """Points and one or more curves through them, as in a regression."""
    figure, axes = _panel(xlabel, ylabel, title)
    axes.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    axes.scatter(array(x), array(y), s=22, color=POINTS, alpha=0.7, label=points)
    for i, (label, values) in enumerate(curves.items()):
        axes.plot(array(curve_x), array(values), label=label, linestyle=("-", "--", "-.", ":")[i % 4])
    axes.legend()
    return Picture(figure, alt)


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
) -> Any:
    image = axes.imshow(matrix, vmin=vmin, vmax=vmax, aspect="auto")
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
            colour = ink([*image.cmap(image.norm(value))])
            axes.text(j, i, f"{value:.{digits}f}", ha="center", va="center", fontsize=9, color=colour)
    return image
