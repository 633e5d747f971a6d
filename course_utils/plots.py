"""The plots of the notebooks: readable sizes, colours for every kind of vision, and always an alt text.

Each function draws, shows the picture in the running cell, and returns it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.picture import STYLE, Picture

MARKERS = "osD^vPX*"
MOST_TICKS = 24  # more labels than this do not fit beside a heat map
MOST_NUMBERS = 80  # cells up to which a heat map carries its numbers

P = ParamSpec("P")


def _styled(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """Draw with our settings, and leave matplotlib's as they were."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Picture:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


@_styled
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
    matrix = _array(weights)
    size = (min(1.8 + 0.45 * matrix.shape[1], 9.0), min(1.4 + 0.4 * matrix.shape[0], 8.0))
    figure = Figure(figsize=(max(size[0], 4.2), max(size[1], 2.6)), layout="constrained")
    axes = figure.subplots()
    image = _draw_matrix(axes, matrix, rows, cols, numbers, vmin, vmax)
    figure.colorbar(image, ax=axes)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return Picture(figure, alt)


@_styled
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
    matrices = {name: _array(panel) for name, panel in panels.items()}
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


@_styled
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
            _array(x),
            _array(y),
            label=label,
            marker=MARKERS[i % len(MARKERS)] if marks else None,
            linestyle=("-", "--", "-.", ":")[i % 4],
        )
    axes.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    _legend(axes, ys)
    return Picture(figure, alt)


@_styled
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
            _array(heights),
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


@_styled
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
    axes.scatter(_array(x), _array(y), s=22, color="#555555", alpha=0.7, label=points)
    for i, (label, values) in enumerate(curves.items()):
        axes.plot(_array(curve_x), _array(values), label=label, linestyle=("-", "--", "-.", ":")[i % 4])
    axes.legend()
    return Picture(figure, alt)


@_styled
def curve_grid(
    x: Any,
    panels: Mapping[str, Mapping[str, Any]],
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    *,
    alt: str,
    columns: int = 4,
) -> Picture:
    """Small panels of lines over a common x, all on one scale: {name of the panel: {label: y}}."""
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(2.4 * columns + 0.6, 1.9 * rows + 0.7), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, ys) in zip(grid.flat, panels.items(), strict=False):
        axes.grid(True)
        axes.set_title(name)
        for i, (label, y) in enumerate(ys.items()):
            axes.plot(_array(x), _array(y), label=label, linestyle=("-", "--", "-.", ":")[i % 4])
    grid.flat[0].legend()
    figure.supxlabel(xlabel)
    figure.supylabel(ylabel)
    figure.suptitle(title)
    return Picture(figure, alt)


@_styled
def sphere(
    points: Mapping[str, Any], radius: float, normal: Sequence[float], title: str = "", *, alt: str, reach: float = 3.0
) -> Picture:
    """Clouds of points [n, 3], a sphere round the origin, and the plane through the origin with this normal."""
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes: Any = figure.add_subplot(projection="3d")
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
    ball = np.stack([np.cos(around) * np.sin(up), np.sin(around) * np.sin(up), np.cos(up)])
    axes.plot_wireframe(*(radius * ball), color="#999999", linewidth=0.4)
    basis = np.linalg.svd(np.array([normal], dtype=float))[2][1:]  # two directions inside the plane
    a, b = np.meshgrid(np.linspace(-reach, reach, 2), np.linspace(-reach, reach, 2))
    axes.plot_surface(*(basis[0][:, None, None] * a + basis[1][:, None, None] * b), color="#E69F00", alpha=0.2)
    for i, (label, cloud) in enumerate(points.items()):
        axes.scatter(*_array(cloud).T, s=14, marker=MARKERS[i % len(MARKERS)], label=label, depthshade=False)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach), title=title)
    axes.set(xlabel="feature 1", ylabel="feature 2", zlabel="feature 3")
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=18, azim=15)
    axes.legend(loc="upper left")
    return Picture(figure, alt)


@_styled
def images(
    panels: Mapping[str, Any],
    title: str = "",
    *,
    alt: str,
    patch: int | None = None,
    over: Mapping[str, Any] | None = None,
    columns: int = 8,
    vmin: float | None = 0.0,
    vmax: float | None = 1.0,
) -> Picture:
    """Images [H, W] or [C, H, W], each under its name, on one grey scale (three channels in colour).

    `patch` draws the borders of the patches; `over` lays maps [rows, cols], by the same names, over the images.
    """
    pictures = {name: _array(panel) for name, panel in panels.items()}
    vmin = min(p.min() for p in pictures.values()) if vmin is None else vmin
    vmax = max(p.max() for p in pictures.values()) if vmax is None else vmax
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    figure = Figure(figsize=(min(1.45 * columns + 0.3, 12.0), 1.65 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (name, picture) in zip(grid.flat, pictures.items(), strict=False):
        picture = picture if picture.ndim == 2 else picture[0] if len(picture) == 1 else np.moveaxis(picture, 0, -1)
        height, width = picture.shape[:2]
        extent = (0, width, height, 0)
        axes.imshow(picture, cmap="gray", vmin=vmin, vmax=vmax, extent=extent)
        if over is not None:
            axes.imshow(_array(over[name]), alpha=0.6, extent=extent)
        if patch is not None:
            axes.vlines(np.arange(0, width + 1, patch), 0, height, color="#E69F00", linewidth=0.8)
            axes.hlines(np.arange(0, height + 1, patch), 0, width, color="#E69F00", linewidth=0.8)
        axes.set_title(name, fontsize=11)
    figure.suptitle(title)
    return Picture(figure, alt)


@_styled
def token_tables(panels: Mapping[str, tuple[Sequence[Sequence[str]], Any]], title: str = "", *, alt: str) -> Picture:
    """Tables of words, one below the other: {name: (rows of words, which of them are padding)}; padding is grey."""
    longest = max(len(row) for rows, _ in panels.values() for row in rows)
    heights = [len(rows) for rows, _ in panels.values()]
    size = (min(1.2 + 0.85 * longest, 12.0), 0.36 * sum(heights) + 0.45 * len(panels) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, (rows, padding)) in zip(grid, panels.items(), strict=True):
        axes.set(xlim=(0, longest), ylim=(len(rows), 0), yticks=[], xticks=[])
        axes.set_title(name, loc="left")
        axes.spines[:].set_visible(False)
        for (i, j), padded in np.ndenumerate(_array(padding) > 0):
            axes.fill_between([j, j + 1], i, i + 1, facecolor="#d0d0d0" if padded else "none", edgecolor="#999999")
            colour = "#666666" if padded else "black"
            axes.text(j + 0.5, i + 0.5, rows[i][j], ha="center", va="center", fontsize=9, color=colour)
    figure.suptitle(title)
    return Picture(figure, alt)


def _panel(xlabel: str, ylabel: str, title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.grid(True)
    axes.set_axisbelow(True)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return figure, axes


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
        low, high = image.get_clim()
        digits = 0 if (matrix == matrix.round()).all() and abs(matrix).max() > 1 else 2
        for (i, j), value in np.ndenumerate(matrix):
            colour = "white" if value < low + 0.6 * (high - low) else "black"
            axes.text(j, i, f"{value:.{digits}f}", ha="center", va="center", fontsize=9, color=colour)
    return image


def _legend(axes: Axes, series: Mapping[str, Any]) -> None:
    if any(series):
        axes.legend()


def _array(values: Any) -> np.ndarray:
    """Tensors, arrays and lists of either as a numpy array, without their gradients."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().to(torch.float64).numpy()
    if isinstance(values, (list, tuple)):
        return np.array([_array(value) for value in values])
    return np.asarray(values, dtype=np.float64)
